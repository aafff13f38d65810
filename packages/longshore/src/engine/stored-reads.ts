// Reads of committed rows by a server that does not own the data and keeps none of it in memory. One load of the store sees one state of the
// data. So a read that misses further rows loads all of its rows again, those it had included: it never mixes two states.

import { Missing } from "./missing.ts";
import { NeedsOwner } from "./needs-owner.ts";
import type { RowStore } from "./rows.ts";
import type { ReadRows, ReadTx } from "./tx.ts";

/** Reads follow a few references, from a task to its run to its definition. One that goes on further is left to the owner, which has memory. */
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

/** The owner may still reach the store; when it does not either, its answer says so. */
async function loaded(store: Pick<RowStore, "load">, tx: ReadTx, needed: readonly Missing[]): Promise<void> {
  try {
    await store.load(tx, needed);
  } catch (thrown) {
    throw new NeedsOwner(thrown);
  }
}
