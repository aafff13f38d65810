// Run ids on this wire. Stepflow's clients read them as UUIDs: the official Python SDK takes `uuid.UUID(run_id)` before it submits a
// sub-run. Ours are UUIDs in another spelling (src/ids.ts), so every run, of any dialect, is shown by its UUID;
// both spellings are accepted.
//
// The items of one run are runs of their own on the board, called `<run id>-<index>`. The wire knows only the run they belong to.

import { idOfUuid, uuidOf } from "../../../core/ids.ts";

/** As many digits as the largest index has, so that items sort by index. */
const indexDigits = 6;

/** More items than these in one run: its list of results would be more than a client can take. Each is a run on the board. */
export const itemsMax = 100_000;

export function itemRunId(runId: string, index: number): string {
  return `${itemPrefix(runId)}${String(index).padStart(indexDigits, "0")}`;
}

/** What the ids of a run's items begin with. */
export function itemPrefix(runId: string): string {
  return `${runId}-`;
}

/** The run that the wire knows, and which item of it this one is: 0 for a run that has no runs for its items. */
export function wireRun(runId: string): { readonly runId: string; readonly itemIndex: number } {
  const match = itemShape.exec(runId);
  return match === null ? { runId, itemIndex: 0 } : { runId: match[1] as string, itemIndex: Number(match[2]) };
}

const itemShape = /^([0-9A-Z]{26})-(\d{6})$/;

/** The id on the wire. What is no id of ours, such as a child run that another protocol named, stays as it is. */
export function wireRunId(runId: string): string {
  const own = wireRun(runId).runId;
  return uuidOf(own) ?? own;
}

/** The id of the run that a client speaks of. */
export function ownRunId(text: string): string {
  return idOfUuid(text) ?? text;
}
