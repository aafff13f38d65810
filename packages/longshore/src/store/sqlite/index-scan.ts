// A page of ids from an index: a bounded number of entries is looked at, however few of them match.

import { turnRows } from "../../core/slices/slices.ts";
import { pageMax, type TaskQuery } from "../../engine/run/reader.ts";
import type { SqlRow } from "./driver.ts";

/** Entries of an index that are looked at without a pause, and that one page looks at while it searches for matches. */
export const scanMax: number = turnRows / 2;

export function matching({ state, lane }: TaskQuery): (row: SqlRow) => boolean {
  return (row) => (state === undefined || row.state === state) && (lane === undefined || row.lane === lane);
}

/** Walks rows until `limit` of them match, or enough were looked at. */
export function scan(rows: Iterable<SqlRow>, limit: number, matches: (row: SqlRow) => boolean): { ids: string[]; next: string | null } {
  const ids: string[] = [];
  const wanted = limited(limit);
  let looked = 0;
  let previous: string | null = null;
  for (const row of rows) {
    // Only a row beyond the page shows that there is a next one.
    if (ids.length === wanted || looked === scanMax) return { ids, next: previous };
    looked++;
    previous = row.id as string;
    if (matches(row)) ids.push(previous);
  }
  return { ids, next: null };
}

export function limited(limit: number): number {
  return Math.min(Math.max(0, Math.floor(limit)), pageMax);
}
