// The answers of one link. Thousands of calls may end together. In one turn of the event loop, a limited number of answers and characters
// is made, for this link and for all links of the owner. The others wait as values for later turns.

import type { Json } from "../../core/json/json.ts";
import type { LoopTurns, Share } from "../../core/slices/loop-turns.ts";
import { sizeOf } from "../../core/text-size.ts";
import { messageValues } from "./frames.ts";

/**
 * The characters that count as one unit, as each answer does. So a link makes 1,024 answers or 1 MiB in a turn, and all links together make
 * twice as many. That takes about 4 ms.
 */
const unitChars = 1_024;

export interface AnswersOptions {
  readonly turns: LoopTurns;
  /** Maximum number of characters that wait. */
  readonly charsMax: number;
  /** Makes an answer and sends it, and returns its characters. */
  make(kind: number, id: number, value: unknown): number;
  /** More characters wait than `charsMax`. */
  full(): void;
}

interface Waiting {
  readonly kind: number;
  readonly id: number;
  readonly value: unknown;
  readonly chars: number;
}

export class Answers {
  readonly #options: AnswersOptions;
  readonly #share: Share;
  /** Answers in the order in which their calls ended. The first `#made` of them were made. */
  #waiting: Waiting[] = [];
  #made = 0;
  /** The characters of those that wait. */
  #chars = 0;

  constructor(options: AnswersOptions) {
    this.#options = options;
    // No link has a part of its own: a node may have a thousand links.
    this.#share = options.turns.share(
      () => this.#continue(),
      () => false,
    );
  }

  get areWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Makes this answer now if the turn has room, or later. `value` must not change. */
  add(kind: number, id: number, value: unknown): void {
    if (!this.areWaiting && !this.#share.used) return this.#make(kind, id, value);
    const { chars } = sizeOf(value as Json, { chars: this.#options.charsMax, values: messageValues });
    this.#waiting.push({ kind, id, value, chars });
    this.#chars += chars;
    if (this.#chars > this.#options.charsMax) return this.#options.full();
    this.#share.wait();
  }

  /** Forgets what waits. */
  clear(): void {
    this.#waiting = [];
    this.#made = 0;
    this.#chars = 0;
  }

  #make(kind: number, id: number, value: unknown): void {
    this.#share.spend(1 + Math.floor(this.#options.make(kind, id, value) / unitChars));
  }

  #continue(): void {
    // `make` may end the link, which clears what waits.
    while (this.#made < this.#waiting.length) {
      if (this.#share.used) return this.#share.wait();
      const { kind, id, value, chars } = this.#waiting[this.#made++] as Waiting;
      this.#chars -= chars;
      this.#make(kind, id, value);
    }
    this.clear();
  }
}
