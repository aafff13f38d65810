// The states that a reader of a run's events has received, so that it receives none of them twice.

import type { RunEvent } from "./run-event.ts";

/** The newest reported state of the run and of each of its tasks. */
export class SeenStates {
  readonly #states = new Map<string, string>();
  hasEnded = false;

  isNew(event: RunEvent): boolean {
    const text = JSON.stringify(event);
    if (this.#states.get(event.id) === text) return false;
    this.#states.set(event.id, text);
    if (event.kind === "run") this.hasEnded = event.endedAt !== null;
    return true;
  }
}
