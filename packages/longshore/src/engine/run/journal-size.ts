// Counts the inputs and results of a durable function. A function with more than this could not be replayed, and would fill the disk.

import { quotaDefaults } from "../../core/quotas.ts";
import type { DriverState } from "./driven-state.ts";

export class JournalSize {
  readonly #state: DriverState;
  readonly #max: number;

  /** The count is a part of `state`. */
  constructor(state: DriverState, max = quotaDefaults.functionChars) {
    this.#state = state;
    this.#max = max;
  }

  /** Counts an input or a result; `undefined` is a result whose size was not stored, by an earlier version. */
  add(chars = 0): void {
    this.#state.chars = (this.#state.chars ?? 0) + chars;
  }

  /** Set when there is no room for more. */
  get error(): string | undefined {
    if ((this.#state.chars ?? 0) <= this.#max) return undefined;
    return `The inputs and results of the function have more than ${this.#max} characters together (quotas.functionChars): store large ones elsewhere, or use continueAs.`;
  }
}
