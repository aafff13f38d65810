// A page of ids from an index. It visits a bounded number of entries, even if few of them match.

import { turnRows } from "../../core/slices/slices.ts";
import type { TaskRow, TaskRowHead } from "../board/task.ts";
import { pageMax, type TaskQuery } from "./reader.ts";
import type { Run } from "./run.ts";

/** How many entries of an index are visited without a pause, and how many one page visits while it searches for matches. */
export const scanMax: number = turnRows / 2;

export function matching({ state, lane }: TaskQuery): (row: { readonly state: string; readonly lane: string | null }) => boolean {
  return (row) => (state === undefined || row.state === state) && (lane === undefined || row.lane === lane);
}

/** Visits rows until `limit` of them match, or the maximum number of rows was visited. */
export function listPage<R extends { readonly id: string }>(
  rows: Iterable<R>,
  limit: number,
  matches: (row: R) => boolean,
): { ids: string[]; next: string | null } {
  const ids: string[] = [];
  const wanted = limited(limit);
  let looked = 0;
  let previous: string | null = null;
  for (const row of rows) {
    // Only a row beyond the page shows that there is a next one.
    if (ids.length === wanted || looked === scanMax) return { ids, next: previous };
    looked++;
    previous = row.id;
    if (matches(row)) ids.push(previous);
  }
  return { ids, next: null };
}

/** How many rows must be read for a page: rows that match a filter may be far apart. */
export function rowsOfPage(limit: number, isFiltered: boolean): number {
  return 1 + (isFiltered ? scanMax : limited(limit));
}

export function limited(limit: number): number {
  return Math.min(Math.max(0, Math.floor(limit)), pageMax);
}

/** A task in memory has its texts. They are removed here, because a list of heads would keep them in memory. */
export function withoutTexts(head: TaskRowHead): TaskRowHead {
  const { input: _input, output: _output, ...rest } = head as TaskRow;
  return rest;
}

/** The number of characters in the fields whose size callers and data decide. */
export function textOf(item: Run | TaskRow): number {
  const more = "variables" in item ? (item.variables?.length ?? 0) + (item.settings?.length ?? 0) + (item.backlog?.length ?? 0) : 0;
  return item.input.length + (item.output?.length ?? 0) + (item.error?.length ?? 0) + more;
}
