// Rows that cannot be read synchronously: every read throws `Missing` until its transaction has loaded the row. So a read outside of an
// operation and of `GroupCommit.read` always throws. Commits take some turns of the event loop, and loaded rows arrive some turns after they
// were read. So this store behaves like a database on another machine, with SQLite's rows.

import { Missing } from "../../src/core/missing.ts";
import type { Row, RowStore, Scan, TableRows, TableSpec } from "../../src/engine/rows.ts";
import type { ReadTx } from "../../src/engine/tx.ts";

interface Read {
  readonly key: string;
  perform(): unknown;
}

export interface MissingCounts {
  misses: number;
}

export function missingRows(rows: RowStore, counts: MissingCounts = { misses: 0 }, turns: () => number = () => 1): RowStore {
  const read = <T>(tx: ReadTx, key: string, perform: () => T): T => {
    if (tx.loaded.has(key)) return tx.loaded.get(key) as T;
    counts.misses++;
    throw new Missing({ key, perform } satisfies Read);
  };
  return {
    ...rows,
    table: <R>(spec: TableSpec<R>): TableRows<R> => {
      const table = rows.table(spec);
      const columns = spec.columns.map(([column, value]) => [column, ({ record }: Whole<R>) => value(record)] as const);
      const whole = rows.table<Whole<R>>({ ...spec, columns, of: (row) => ({ row, record: spec.of(row) }) });
      const name = [spec.name, ...spec.columns.map(([column]) => column), ...(spec.sizes ?? []).map(([size]) => size)].join(" ");
      return {
        ...table,
        get: (tx, ...key) => read(tx, `${name} get ${JSON.stringify(key)}`, () => table.get(tx, ...key)),
        scan: (tx, scan) => read(tx, `${name} scan ${JSON.stringify(scan)}`, () => untilEnough(whole.scan(tx, scan), scan)),
        total: (tx, scan, column) => read(tx, `${name} total ${column} ${JSON.stringify(scan)}`, () => table.total(tx, scan, column)),
      };
    },
    async commit(write) {
      await pause(turns());
      await rows.commit(write);
      await pause(turns());
    },
    async load(tx, missing) {
      await pause(turns());
      const found = missing.map(({ read: wanted }) => [(wanted as Read).key, (wanted as Read).perform()] as const);
      await pause(turns());
      for (const [key, value] of found) tx.loaded.set(key, value);
      return undefined;
    },
  };
}

interface Whole<R> {
  readonly row: Row;
  readonly record: R;
}

/** It returns no additional row, because readers must not rely on one. */
function untilEnough<R>(rows: Iterable<Whole<R>>, { enough }: Scan): R[] {
  const found: R[] = [];
  let chars = 0;
  for (const { row, record } of rows) {
    found.push(record);
    for (const column of enough?.of ?? []) chars += sizeOf(row[column]);
    if (enough !== undefined && chars >= enough.chars) break;
  }
  return found;
}

function sizeOf(value: unknown): number {
  if (typeof value === "string" || value instanceof Uint8Array) return value.length;
  return typeof value === "number" ? value : 0;
}

async function pause(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
