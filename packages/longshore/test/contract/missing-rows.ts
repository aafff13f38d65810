// Rows that are never at hand: every read throws `Missing` the first time and is answered when it is asked again after a load, until the
// next commit. Commits take some turns of the event loop. So it behaves like a database on another machine, with SQLite's rows.

import { Missing, type RowStore, type TableRows, type TableSpec } from "../../src/engine/rows.ts";

interface Read {
  readonly key: string;
  perform(): unknown;
}

export interface MissingCounts {
  misses: number;
}

export function missingRows(rows: RowStore, counts: MissingCounts = { misses: 0 }, turns: () => number = () => 1): RowStore {
  const atHand = new Map<string, unknown>();
  const read = <T>(key: string, perform: () => T): T => {
    if (atHand.has(key)) return atHand.get(key) as T;
    counts.misses++;
    throw new Missing({ key, perform } satisfies Read);
  };
  return {
    ...rows,
    table: <R>(spec: TableSpec<R>): TableRows<R> => {
      const table = rows.table(spec);
      const name = [spec.name, ...spec.columns.map(([column]) => column), ...(spec.sizes ?? []).map(([size]) => size)].join(" ");
      return {
        ...table,
        get: (...key) => read(`${name} get ${JSON.stringify(key)}`, () => table.get(...key)),
        scan: (scan) => read(`${name} scan ${JSON.stringify(scan)}`, () => [...table.scan(scan)]),
        owned: (owned) => read(`${name} owned ${JSON.stringify(owned)}`, () => [...table.owned(owned)]),
        sum: (column, scan) => read(`${name} sum ${column} ${JSON.stringify(scan)}`, () => table.sum(column, scan)),
        count: (scan) => read(`${name} count ${JSON.stringify(scan)}`, () => table.count(scan)),
        last: () => read(`${name} last`, () => table.last()),
      };
    },
    async commit(write) {
      await pause(turns());
      await rows.commit(write);
      // What was read may be older now.
      atHand.clear();
      await pause(turns());
    },
    async load(missing) {
      await pause(turns());
      for (const { read: wanted } of missing) {
        const { key, perform } = wanted as Read;
        atHand.set(key, perform());
      }
    },
  };
}

async function pause(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
