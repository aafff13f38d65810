// Faults that are added to an engine, to check that the simulation finds them. They are mistakes that are possible when a commit takes
// time.

import type { GroupCommit } from "../../src/engine/commit.ts";
import type { ReadTx } from "../../src/engine/tx.ts";

export type Plant =
  /** A hold is renewed in memory during the commit of its end: the old row overwrites the new one. */
  | "renewal in the middle of a commit"
  /** Readers get rows that are not committed yet. */
  | "readers of uncommitted rows"
  /** An owner relies on its memory without a time limit. */
  | "endless trust"
  /** An owner takes back what it handed out over a link that broke, although the worker may have it (simulation-node.ts). */
  | "hand-outs that go back with their link";

export function planted(commit: GroupCommit, plant: Plant): void {
  if (plant === "renewal in the middle of a commit") Object.defineProperty(commit, "isMemoryCurrent", { get: () => true });
  else if (plant === "readers of uncommitted rows") {
    const read = commit.read.bind(commit);
    const inside = (tx: ReadTx): ReadTx => ({ isOperation: true, loaded: tx.loaded });
    commit.read = (work) => read((tx) => work(inside(tx)));
  }
}
