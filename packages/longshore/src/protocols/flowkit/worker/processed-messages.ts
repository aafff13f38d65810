// Remembers processed messages, because a broker may deliver one twice. Bounded by number and age; the oldest are forgotten first.

import type { Clock } from "../../../core/clock.ts";

export class ProcessedMessages {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #ttlMs: number;
  /** In the order of arrival. */
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Clock, max: number, ttlMs: number) {
    this.#clock = clock;
    this.#max = max;
    this.#ttlMs = ttlMs;
  }

  has(id: string): boolean {
    return (this.#untilMs.get(id) ?? 0) > this.#clock.now();
  }

  add(id: string): void {
    const now = this.#clock.now();
    this.#untilMs.delete(id);
    this.#untilMs.set(id, now + this.#ttlMs);
    for (const [oldest, untilMs] of this.#untilMs) {
      if (untilMs > now && this.#untilMs.size <= this.#max) return;
      this.#untilMs.delete(oldest);
    }
  }
}
