// The hand-outs that count for limits with a rate, as rows: a restart must not make room in a full window. Each row is written in the
// commit of its claim, and removed after its window has passed.

import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { plainTable } from "../tables/plain-table.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { LimitKey, Limits } from "./limits.ts";

interface HandOut {
  key: string;
  at: number;
  until: number;
}

const handOutTable = plainTable<HandOut>("hand_out", [], { key: "key", at: "at", until: "until" });

export class HandOuts {
  readonly #rows: TableRows<HandOut>;
  readonly #additions: Additions<HandOut>;

  constructor(store: RowStore, commit: GroupCommit) {
    this.#rows = store.table(handOutTable);
    this.#additions = new Additions(commit, (handOut) => {
      this.#rows.remove({ by: ["until"], below: [handOut.at + 1] });
      this.#rows.insert([handOut]);
    });
  }

  /** Records that a task with these limits is handed out. */
  add(tx: Tx, limits: readonly LimitKey[], at: number): void {
    for (const { key, rate } of limits) if (rate !== undefined) this.#additions.add(tx, { key, at, until: at + rate.windowMs });
  }

  /** Restores the windows of `limits`. A clock that was set back in the meantime makes no window longer. */
  recover(tx: ReadTx, limits: Limits, now: number): void {
    for (const { key, at } of this.#rows.scan(tx, { by: ["until"], above: [now] })) limits.remember(key, Math.min(at, now));
  }
}
