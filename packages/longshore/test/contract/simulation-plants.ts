// Faults that are planted into an engine, to see whether the simulation finds them: what could go wrong where a commit takes a while.

import type { GroupCommit } from "../../src/engine/commit.ts";
import type { ReadTx } from "../../src/engine/tx.ts";

export type Plant =
  /** A hold is renewed in memory while the commit of its end is under way: the old row is written over the new one. */
  | "renewal in the middle of a commit"
  /** Readers get rows that are not committed yet. */
  | "readers of uncommitted rows"
  /** An owner relies on its memory for as long as it lives. */
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
