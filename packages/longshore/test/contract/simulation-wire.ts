// Rows behind a connection that breaks. Writes are collected while the engine makes them. One transaction performs them later, after the
// owner's fence. Reads arrive one after the other, so that commits come between them, and a load may fail when half of it has arrived.

import type { LongshoreError } from "../../src/core/errors.ts";
import type { RowStore, TableRows, TableSpec } from "../../src/engine/rows.ts";
import { missingRows } from "./missing-rows.ts";
import { away, type Break, type SimulatedOwner } from "./simulation-owner.ts";

export interface Wire {
  readonly owner: SimulatedOwner;
  /** Time that a message takes, in turns of the event loop. */
  turns(): number;
  pause(): Promise<void>;
  /** What happens to the connection of the next commit. */
  nextBreak(): Break | null;
  /** Whether the next load fails. */
  failsLoad(): boolean;
  /** The owner knows of all commits up to now. */
  acknowledged(): void;
}

/** Reads of one load that arrive together. */
const piece = 2;

export function rowsOnWire(rows: RowStore, { owner, turns, pause, nextBreak, failsLoad, acknowledged }: Wire): RowStore {
  const later = missingRows(rows, { misses: 0 }, turns);
  let batch: (() => void)[] | null = null;
  const add = (write: () => void): void => {
    if (batch === null) throw new Error("Rows are written in a commit only.");
    batch.push(write);
  };
  return {
    ...later,
    table: <R>(spec: TableSpec<R>): TableRows<R> => {
      const table = later.table(spec);
      return {
        ...table,
        insert: (records) => add(() => table.insert(records)),
        write: (record, columns) => add(() => table.write(record, columns)),
        remove: (wanted) => add(() => table.remove(wanted)),
      };
    },
    async commit(write) {
      const own: (() => void)[] = [];
      batch = own;
      try {
        write();
      } finally {
        batch = null;
      }
      const carryOut = () =>
        void rows.commit(() => {
          for (const each of own) each();
        });
      await owner.commit(carryOut, nextBreak());
      acknowledged();
    },
    async load(tx, missing) {
      const failsAt = failsLoad() ? Math.floor(missing.length / 2) : Number.POSITIVE_INFINITY;
      await pause();
      const first = owner.storedVersion();
      for (let at = 0; at < missing.length; at += piece) {
        if (at >= failsAt) throw away("the connection broke in the middle of a load");
        await later.load(tx, missing.slice(at, at + piece));
      }
      if (missing.length <= failsAt && failsAt !== Number.POSITIVE_INFINITY) throw away("the connection broke at the end of a load");
      const last = owner.storedVersion();
      await pause();
      if (tx.isOperation) return undefined;
      return first === last ? first : "torn";
    },
    version: () => owner.version(),
    isOwned: () => owner.isOwned(),
    isGone: (): LongshoreError | null => owner.isGone(),
  };
}
