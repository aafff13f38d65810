// Ends the delays of the queued tasks of a run, in slices.

import type { GroupCommit } from "../commit.ts";
import type { Once } from "../request-marks.ts";
import type { Tx } from "../tx.ts";

export interface Hastening {
  readonly commit: GroupCommit;
  readonly performed: Once;
  /** Ends some delays. Returns the task to continue after, null at the end, undefined when there is no such open run. */
  slice(tx: Tx, after?: string): string | null | undefined;
  /** Notes the order. */
  note(tx: Tx): void;
}

/** Returns false when there is no such run, or it has ended. */
export async function hasten(runId: string, { commit, performed, slice, note }: Hastening): Promise<boolean> {
  const more = (after?: string) => commit.run((tx) => slice(tx, after));
  const begin = (tx: Tx) => {
    const next = slice(tx);
    if (next !== undefined) note(tx);
    return { next };
  };
  // When the request is performed again, its slices are too: some may be missing.
  const begun = await performed.once<{ readonly next: string | null | undefined } | null>(`hasten ${runId}`, begin, () => null);
  const first = begun === null ? await more() : begun.next;
  for (let after = first; after != null; ) after = await more(after);
  return first !== undefined;
}
