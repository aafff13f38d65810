// Reads of committed rows by a server that does not own the data. It keeps nothing in memory. One load of the store sees one state of the
// data. So a read that misses further rows loads all of its rows again, and never mixes two states.

import { Missing } from "../core/missing.ts";
import { NeedsOwner } from "./needs-owner.ts";
import type { RowStore } from "./rows.ts";
import type { ReadRows, ReadTx } from "./tx.ts";

/** Maximum number of loads of one read. Reads follow a few references, from a task to its run to its definition. The owner performs longer ones from memory. */
const loadsMax = 8;

export function storedReads(store: Pick<RowStore, "load">): ReadRows {
  return async (work) => {
    const needed: Missing[] = [];
    for (let loads = 0; loads <= loadsMax; loads++) {
      const tx: ReadTx = { isOperation: false, loaded: new Map() };
      if (needed.length > 0) await loaded(store, tx, needed);
      try {
        return work(tx);
      } catch (thrown) {
        if (!(thrown instanceof Missing)) throw thrown;
        needed.push(...thrown.all);
      }
    }
    throw new NeedsOwner();
  };
}

/** When the store cannot be reached, the request is passed to the owner. It may still reach the store; otherwise it replies with the error. */
async function loaded(store: Pick<RowStore, "load">, tx: ReadTx, needed: readonly Missing[]): Promise<void> {
  try {
    await store.load(tx, needed);
  } catch (thrown) {
    throw new NeedsOwner(thrown);
  }
}
