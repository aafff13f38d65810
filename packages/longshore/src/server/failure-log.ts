// Logs a failure that repeats with every try: once when it begins, and once with its duration when it ends. Both lines have the same level.

import type { Clock } from "../core/clock.ts";
import { toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import type { Logger } from "../core/logger.ts";

/** How many different failures are remembered; further ones may be logged again, which is harmless. */
const keptMax = 1_000;

export class FailureLog implements FailureListener {
  readonly #logger: Logger;
  readonly #clock: Pick<Clock, "now">;
  readonly #since = new Map<string, number>();

  constructor(logger: Logger, clock: Pick<Clock, "now">) {
    this.#logger = logger;
    this.#clock = clock;
  }

  failing(what: string, error: unknown): void {
    if (this.#since.has(what)) return;
    if (this.#since.size >= keptMax) this.#since.clear();
    this.#since.set(what, this.#clock.now());
    this.#logger.warn(`Trouble with ${what}; it is tried again until it works`, { error: toError(error).message });
  }

  working(what: string): void {
    const since = this.#since.get(what);
    if (since === undefined) return;
    this.#since.delete(what);
    this.#logger.warn(`No more trouble with ${what}`, { afterMs: this.#clock.now() - since });
  }
}
