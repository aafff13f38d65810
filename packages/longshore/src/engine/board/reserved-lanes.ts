// Lanes reserved for the server: their tasks are run by the server itself, passed on by it, or run in a shell. So each belongs to one
// dialect, a task of another is never posted there whatever its name is, and a claim takes from one only when the server made it for that
// lane.

import { LongshoreError } from "../../core/errors.ts";
import type { Lane } from "./task.ts";

/** How the names begin that belong to no dialect unless the table below has one. */
const ownMark = "$";

/** The dialects of each kept name. Data files hold these names, so they stay as they are. */
const keepers: readonly { readonly names: RegExp; readonly dialects: readonly string[] }[] = [
  { names: /^\$command$/, dialects: ["workflow-graph"] },
  { names: /^stepflow[:-]/, dialects: ["stepflow", "stepflow-items"] },
  { names: /^flowkit-fn$/, dialects: ["flowkit"] },
];

/** All of them at once: nearly every name is none of them, and this runs for each task and claim. */
const keptName = /^(?:\$|stepflow[:-]|flowkit-fn$)/;

export function ownLane(name: string): string {
  return ownMark + name;
}

export function isReservedLane(name: string): boolean {
  return keptName.test(name);
}

/** The first of these lanes that this dialect may not post to; undefined for none. Without a dialect every reserved lane is foreign. */
export function foreignLane(lanes: readonly Lane[], dialect?: string): Lane | undefined {
  return lanes.find(({ name }) => isReservedLane(name) && !belongsTo(name, dialect));
}

export function reservedForServer(name: string): string {
  return `No task may be called ${JSON.stringify(name)}: this name is reserved for the server. Give the task another name.`;
}

/** Why a claim is refused that names a kept lane other than `serves`, the one that the server makes it for; undefined when it names none. */
export function refusedClaim(names: readonly string[], serves: string | undefined): LongshoreError | undefined {
  for (const name of names) {
    if (name === serves || !isReservedLane(name)) continue;
    const message = `No worker may claim ${JSON.stringify(name)}: this name is reserved for the server. Claim the names of the tasks that the worker has.`;
    return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: "name" } });
  }
  return undefined;
}

function belongsTo(name: string, dialect: string | undefined): boolean {
  return dialect !== undefined && keepers.some(({ names, dialects }) => names.test(name) && dialects.includes(dialect));
}
