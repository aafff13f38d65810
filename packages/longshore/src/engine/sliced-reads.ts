// Reads rows for lists and views. Each read of many rows waits for its turn of the event loop, and visits a bounded number of them.

import type { Slices } from "../core/slices/slices.ts";
import type { RowStore, Scan, TableRows } from "./rows.ts";
import { scanMax } from "./run/list-page.ts";
import type { ReadRows } from "./tx.ts";

export interface ReadDeps {
  readonly store: RowStore;
  /** Reads rows that memory may have. */
  readonly read: ReadRows;
  /** Limits the work of all readers together in one turn of the event loop. */
  readonly slices: Slices;
}

export function allRows<R>({ read }: Pick<ReadDeps, "read">, rows: TableRows<R>, scan: Scan): Promise<R[]> {
  return read((tx) => [...rows.scan(tx, scan)]);
}

export async function firstRow<R>(deps: Pick<ReadDeps, "read">, rows: TableRows<R>, scan: Scan): Promise<R | undefined> {
  return (await allRows(deps, rows, { ...scan, limit: 1 }))[0];
}

/** Pages of an index in the order of the ids, from the one that follows `after`. */
export async function* pagesById<R extends { readonly id: string }>(
  { read, slices }: Pick<ReadDeps, "read" | "slices">,
  rows: TableRows<R>,
  scan: Scan,
  after: string,
): AsyncGenerator<readonly R[], void, void> {
  for (let behind = after; ; ) {
    await slices.turn(scanMax);
    const page = await allRows({ read }, rows, { ...scan, above: [behind], limit: scanMax });
    yield page;
    if (page.length < scanMax) return;
    behind = page.at(-1)?.id as string;
  }
}
