// Lanes reserved for the server: their tasks are run by the server itself, passed on by it, or run in a shell. So each belongs to one
// dialect, a task of another is never posted there whatever its name is, and a claim takes from one only when the server made it for that
// lane.

import { LongshoreError } from "../../core/errors.ts";
import { beyondBounds } from "./lane-bounds.ts";
import type { Lane } from "./task.ts";

/** How the names begin that belong to no dialect, except those that a protocol reserves. */
const ownMark = "$";

/** Names that a protocol reserves for its dialects. Data files hold these names, so they stay as they are. */
export interface Reservation {
  readonly names: RegExp;
  readonly dialects: readonly string[];
}

export class ReservedLanes {
  readonly #reservations: readonly Reservation[];

  constructor(reservations: readonly Reservation[]) {
    this.#reservations = reservations;
  }

  has(name: string): boolean {
    return name.startsWith(ownMark) || this.#reservations.some(({ names }) => names.test(name));
  }

  /**
   * Why no task of this dialect is posted to these lanes: one is too large, or is reserved for another dialect; undefined when it may be. Without a
   * dialect every reserved lane is refused.
   */
  refusedPost(lanes: readonly Lane[], dialect?: string): string | undefined {
    const beyond = beyondBounds(lanes);
    if (beyond !== undefined) return beyond;
    const foreign = lanes.find(({ name }) => this.has(name) && !this.#belongsTo(name, dialect));
    return foreign === undefined ? undefined : reservedForServer(foreign.name);
  }

  /** Why a claim is refused that names a reserved lane other than `serves`, the one that the server makes it for; undefined when it names none. */
  refusedClaim(names: readonly string[], serves: string | undefined): LongshoreError | undefined {
    for (const name of names) {
      if (name === serves || !this.has(name)) continue;
      const message = `No worker may claim ${JSON.stringify(name)}: this name is reserved for the server. Claim the names of the tasks that the worker has.`;
      return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: "name" } });
    }
    return undefined;
  }

  #belongsTo(name: string, dialect: string | undefined): boolean {
    return dialect !== undefined && this.#reservations.some(({ names, dialects }) => names.test(name) && dialects.includes(dialect));
  }
}

export function ownLane(name: string): string {
  return ownMark + name;
}

export function reservedForServer(name: string): string {
  return `No task may be called ${JSON.stringify(name)}: this name is reserved for the server. Give the task another name.`;
}
