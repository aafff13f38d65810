// Work that decisions need done, and that takes longer than one turn of the event loop may. The operation of the decision is postponed
// until the work is done in slices.

import type { Clock } from "../../core/clock.ts";
import { toError } from "../../core/errors.ts";
import { inTurns } from "../../core/slices/slice-work.ts";
import type { Slices } from "../../core/slices/slices.ts";
import { Postponed } from "../commit-errors.ts";
import type { DoneWork, LongWork } from "./dialect.ts";

/** How long a result is kept. The operation that needs it is performed again at once, but may fail before it needs the result. */
const keptMs = 5_000;

export class LongWorks {
  readonly #clock: Clock;
  readonly #slices: Slices | undefined;
  readonly #works = new Map<string, { done: DoneWork | undefined; readonly making: Promise<void> }>();

  constructor(clock: Clock, slices: Slices | undefined) {
    this.#clock = clock;
    this.#slices = slices;
  }

  /** Throws `Postponed` until the work is done. */
  done(runId: string, { key, make }: LongWork): DoneWork {
    const id = `${runId} ${key}`;
    const work = this.#works.get(id) ?? this.#begin(id, make);
    if (work.done === undefined) throw new Postponed(work.making);
    return work.done;
  }

  #begin(id: string, make: LongWork["make"]): { done: DoneWork | undefined; readonly making: Promise<void> } {
    const made = inTurns(make(), this.#slices).then(
      (value): DoneWork => ({ value }),
      (error: unknown): DoneWork => ({ error: toError(error) }),
    );
    const making = made.then((done) => {
      work.done = done;
      this.#clock.at(this.#clock.now() + keptMs, () => this.#works.delete(id));
    });
    const work = { done: undefined as DoneWork | undefined, making };
    this.#works.set(id, work);
    return work;
  }
}
