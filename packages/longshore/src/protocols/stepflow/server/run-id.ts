// Run ids on this wire. Stepflow's clients parse them as UUIDs: the official Python SDK calls `uuid.UUID(run_id)` before it submits a
// sub-run. Our ids are UUIDs in another notation (core/ids.ts), so every run, of any dialect, is shown by its UUID; both notations are
// accepted.
//
// Each item of a run is a run on the board, called `<run id>-<index>`. The wire knows only the run that they belong to.

import { idOfUuid, uuidOf } from "../../../core/ids.ts";

/** The number of digits of an index: as many as the largest index has, so that items sort by index. */
const indexDigits = 6;

/** Maximum number of items in one run. Each is a run on the board, and a client could not handle a longer list of results. */
export const itemsMax = 100_000;

export function itemRunId(runId: string, index: number): string {
  return `${itemPrefix(runId)}${String(index).padStart(indexDigits, "0")}`;
}

/** The prefix of the ids of a run's items. */
export function itemPrefix(runId: string): string {
  return `${runId}-`;
}

/** The run on the wire, and the index of the item; 0 for a run without item runs. */
export function wireRun(runId: string): { readonly runId: string; readonly itemIndex: number } {
  const match = itemShape.exec(runId);
  return match === null ? { runId, itemIndex: 0 } : { runId: match[1] as string, itemIndex: Number(match[2]) };
}

const itemShape = /^([0-9A-Z]{26})-(\d{6})$/;

/** The id on the wire. An id that is not ours is not changed. */
export function wireRunId(runId: string): string {
  const own = wireRun(runId).runId;
  return uuidOf(own) ?? own;
}

/** Our id of the run that a client names. */
export function ownRunId(text: string): string {
  return idOfUuid(text) ?? text;
}
