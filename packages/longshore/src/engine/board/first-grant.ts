// The first grant number after a start of the server. A data file may be an older copy: a restored backup, or a folder that was put back.
// Then workers may still report on hand-outs that the file does not contain. Each start therefore begins at a number that no earlier start
// has used, derived from the current time. Such a worker holds a lower number than the next hand-out of its task, and is refused.
//
// A new data file has no earlier hand-outs, and counts from 0.
//
// A removed task leaves no number behind, and its id may be used again while a worker still holds the removed one. So after a removal, the
// tasks that begin count from above all hand-outs so far.

/** The counter rises by two for each hand-out. So this rate allows one hand-out of a task in each second that a server runs. */
const perSecond = 2;
/** Numbers stay below 2^31 until 2059: some programs store them in 32 bits. */
const epochMs = Date.UTC(2025, 0, 1);

/** The result is even, because the number of a task that no worker has is always even. */
export function firstGrant(nowMs: number): number {
  return Math.max(0, perSecond * Math.floor((nowMs - epochMs) / 1_000));
}

/** How far numbers may be ahead of the time after removals: enough for 60 removals, each with a hand-out, within one second. */
const aheadMs = 60_000;

/** The first grant number after a removal, when `highest` was handed out. A task with many hand-outs must not use up the numbers of all. */
export function grantAfterRemoval(highest: number, nowMs: number): number {
  return Math.min(highest + (highest % 2), firstGrant(nowMs + aheadMs));
}
