// Lanes reserved for the server: the server runs their tasks itself, passes them on, or runs them in a shell. So each of these lanes
// belongs to certain dialects, and a task of another dialect is not posted there. A claim takes from such a lane only when the server made
// the claim for that lane, or when the reservation lets workers claim it (`isForWorkers`).

import { LongshoreError } from "../../core/errors.ts";
import { beyondBounds } from "./lane-bounds.ts";
import type { Lane } from "./task.ts";

/** The prefix of names that belong to no dialect, except those that a protocol reserves. */
const ownMark = "$";

/** Names that a protocol reserves for its dialects. Data files hold these names, so they stay as they are. */
export interface Reservation {
  readonly names: RegExp;
  readonly dialects: readonly string[];
  /** Workers may claim from these reserved lanes as well. */
  readonly isForWorkers?: boolean;
}

interface Posted {
  readonly lanes: readonly Lane[];
  readonly limits?: readonly { readonly key: string }[];
}

export class ReservedLanes {
  readonly #reservations: readonly Reservation[];

  constructor(reservations: readonly Reservation[]) {
    this.#reservations = reservations;
  }

  has(name: string): boolean {
    return name.startsWith(ownMark) || this.#reservations.some(({ names }) => names.test(name));
  }

  /** Whether no worker may claim from the lane. */
  isForServer(name: string): boolean {
    return name.startsWith(ownMark) || this.#reservations.some(({ names, isForWorkers }) => !isForWorkers && names.test(name));
  }

  /**
   * Why a task of this dialect may not be posted to these lanes: a lane is too large, or reserved for another dialect. Or the task would count
   * against a limit of the server's own tasks, which would then wait for it. Undefined when it may be posted. Without a dialect every reserved
   * lane is refused.
   */
  refusedPost({ lanes, limits = [] }: Posted, dialect?: string): string | undefined {
    const beyond = beyondBounds(lanes);
    if (beyond !== undefined) return beyond;
    const foreign = lanes.find(({ name }) => this.has(name) && !this.#belongsTo(name, dialect));
    if (foreign !== undefined) return reservedForServer(foreign.name);
    const limit = limits.find(({ key }) => key.startsWith(ownMark));
    if (limit === undefined || lanes.every(({ name }) => this.has(name))) return undefined;
    return `No task may have the limit ${JSON.stringify(limit.key)}: this key is reserved for the server. Give the limit another key.`;
  }

  /**
   * Why a claim is refused, or undefined when it is accepted. It must name no reserved lane except `serves`, the lane that the server made
   * the claim for.
   */
  refusedClaim(names: readonly string[], serves: string | undefined): LongshoreError | undefined {
    for (const name of names) {
      if (name === serves || !this.isForServer(name)) continue;
      const message = `No worker may claim ${JSON.stringify(name)}: this name is reserved for the server. Claim the names of the tasks that the worker has.`;
      return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: "name" } });
    }
    return undefined;
  }

  #belongsTo(name: string, dialect: string | undefined): boolean {
    return dialect !== undefined && this.#reservations.some(({ names, dialects }) => names.test(name) && dialects.includes(dialect));
  }
}

/**
 * Whether the server itself performs the tasks of the lane, in a few slots of its own. The names of these lanes have a dot; the tasks of other
 * reserved lanes are for workers with a shell.
 */
export function isServedHere(name: string): boolean {
  return name.startsWith(ownMark) && name.includes(".");
}

export function ownLane(name: string): string {
  return ownMark + name;
}

export function reservedForServer(name: string): string {
  return `No task may be called ${JSON.stringify(name)}: this name is reserved for the server. Give the task another name.`;
}
