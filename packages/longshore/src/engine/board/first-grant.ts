// From which number on a start of the server counts hand-outs. A data file may be an older copy: a backup that was restored, or a folder that was put
// back. Then tasks were handed out that the file knows nothing of, and their workers still report. Each start therefore begins at a number that no
// start before it has used, which the time is: such a worker holds a lower number than the next hand-out of its task, and is refused.
//
// A file that no server has opened before has no such past, and counts from 0.

/** The counter moves by two for each hand-out, so this is ahead of a task that is handed out once a second for as long as a server runs. */
const perSecond = 2;
/** Numbers stay below 2^31 until 2059: some programs that carry them keep no more digits. */
const epochMs = Date.UTC(2025, 0, 1);

/** Even, as the number of a task that no worker has. */
export function firstGrant(nowMs: number): number {
  return Math.max(0, perSecond * Math.floor((nowMs - epochMs) / 1_000));
}
