// An open task after a restart. Every live hold gets one full term, because its last renewal may not have been written. Every offer gets
// one too: no worker could take it while the server was down, and workers need time to come back.

import type { TaskRow } from "./task.ts";

export function restored(stored: TaskRow, now: number): TaskRow {
  if (stored.state === "queued") return { ...stored, dueAt: dueAfterRestart(stored, now) };
  const { holdUntil, claimBy, claimMs } = stored;
  if (stored.state !== "offered") return { ...stored, holdUntil: holdUntil === null ? null : now + stored.termMs };
  const lastsMs = Math.max((holdUntil ?? 0) - (stored.claimedAt ?? 0), stored.termMs);
  return {
    ...stored,
    holdUntil: holdUntil === null ? null : now + lastsMs,
    claimBy: claimBy === null ? null : Math.max(claimBy, now + Math.min(lastsMs, claimMs ?? lastsMs)),
    // An offer's time counts from `claimedAt`: with the old value it would last longer after each restart.
    claimedAt: now,
  };
}

/** A delay is never longer than its original length, even if the machine's clock has been set back since. */
export function dueAfterRestart({ lane, dueAt, queuedAt }: Pick<TaskRow, "lane" | "dueAt" | "queuedAt">, now: number): number {
  return lane === null ? dueAt : Math.min(dueAt, now + dueAt - queuedAt);
}
