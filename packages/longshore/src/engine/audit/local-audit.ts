// Writes the audit, in the transaction of each order: there is no order without its entry, and no entry of an order that failed.

import type { Clock } from "../../core/clock.ts";
import { cutMiddle } from "../../core/text.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import type { Keep } from "../run/retention.ts";
import { auditTable } from "../tables/audit.ts";
import type { Tx } from "../tx.ts";
import type { AuditEntry, Ordered } from "./audit.ts";

/** Longer texts of callers are cut: a reason may be an error of many kilobytes. */
const textCharsMax = 1_000;
/** Entries that one transaction removes. */
const removedMax = 500;

export interface LocalAuditDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
}

/** Records an order in the transaction that performs it. */
export interface Audit {
  note(tx: Tx, ordered: Ordered): void;
}

/** An audit that keeps nothing. */
export const unaudited: Audit = { note: () => {} };

export class LocalAudit implements Audit {
  readonly #deps: LocalAuditDeps;
  readonly #rows: TableRows<AuditEntry>;
  readonly #added: Additions<AuditEntry>;
  readonly #removed: Additions<number>;
  #last = 0;

  constructor(deps: LocalAuditDeps) {
    const { store, commit } = deps;
    this.#deps = deps;
    this.#rows = store.table(auditTable);
    this.#added = new Additions(commit, (entry) => this.#rows.insert([entry]));
    this.#removed = new Additions(commit, (below) => this.#rows.remove({ by: ["number"], below: [below] }));
  }

  async recover(): Promise<void> {
    const [last] = await this.#deps.commit.read((tx) => [...this.#rows.scan(tx, { by: ["number"], backwards: true, limit: 1 })]);
    this.#last = last?.number ?? 0;
  }

  /** Effects that no caller has ordered are not in the audit, such as the cancel of a child with its parent. */
  note(tx: Tx, ordered: Ordered): void {
    const { orderer } = tx;
    if (orderer === undefined) return;
    const { reason = null, target } = ordered;
    const number = ++this.#last;
    tx.undo(() => {
      this.#last--;
    });
    this.#added.add(tx, {
      ...ordered,
      number,
      at: this.#deps.clock.now(),
      caller: orderer.name,
      via: orderer.via,
      target: cutMiddle(target, textCharsMax),
      reason: reason === null ? null : cutMiddle(reason, textCharsMax),
    });
  }

  /** Removes entries above the maximum age or number. Returns whether more are left to remove. */
  async prune({ ageMs, count }: Keep, now: number): Promise<boolean> {
    const { commit } = this.#deps;
    const first = { by: ["number"], limit: removedMax };
    const oldest = await commit.read((tx) => [...this.#rows.scan(tx, first)]);
    const keptFrom = this.#last - count;
    const excess = oldest.filter(({ number, at }) => number <= keptFrom || at < now - ageMs);
    const last = excess.at(-1);
    if (last === undefined) return false;
    await commit.run((tx) => this.#removed.add(tx, last.number + 1));
    return excess.length === removedMax;
  }
}
