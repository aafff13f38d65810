// An open task as it is after a restart. Every live hold and every offer gets one full term: its holder may have renewed it unwritten, and no
// worker could take up an offer while the server was away.

import type { TaskRow } from "./task.ts";

export function restored(stored: TaskRow, now: number): TaskRow {
  if (stored.state === "queued") return { ...stored, dueAt: dueAt(stored, now) };
  const { holdUntil, claimBy, claimMs } = stored;
  if (stored.state !== "offered") return { ...stored, holdUntil: holdUntil === null ? null : now + stored.termMs };
  const lastsMs = (holdUntil ?? 0) - (stored.claimedAt ?? 0);
  return {
    ...stored,
    holdUntil: holdUntil === null ? null : now + lastsMs,
    claimBy: claimBy === null ? null : Math.max(claimBy, now + Math.min(lastsMs, claimMs ?? lastsMs)),
    // An offer lasts from when it was made: without this it would last longer with each restart.
    claimedAt: now,
  };
}

/** A delay is never longer than it was at its beginning, even if the machine's clock has been set back since. */
function dueAt({ lane, dueAt, queuedAt }: TaskRow, now: number): number {
  return lane === null ? dueAt : Math.min(dueAt, now + dueAt - queuedAt);
}
