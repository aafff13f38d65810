// The table of orders to many runs. What was ordered never changes; the other columns change after each slice.

import type { BulkOrder, BulkProgress } from "../bulk/bulk.ts";
import type { TableSpec } from "../rows.ts";

/** What a slice leaves for the next one. */
export interface BulkState extends BulkProgress {
  /** The `next` of the search, or the number of ids that are done; null before the first slice. */
  readonly cursor: string | null;
}

export interface BulkRow {
  readonly id: string;
  readonly order: BulkOrder & { readonly createdAt: number; readonly caller: string | null };
  readonly state: BulkState;
  readonly endedAt: number | null;
}

export const bulkTable: TableSpec<BulkRow> = {
  name: "bulk",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["body", ({ order }) => JSON.stringify(order)],
    ["state", ({ state }) => JSON.stringify(state)],
    ["ended_at", ({ endedAt }) => endedAt],
  ],
  of: (row) => ({
    id: row.id as string,
    order: JSON.parse(row.body as string) as BulkRow["order"],
    state: JSON.parse(row.state as string) as BulkState,
    endedAt: row.ended_at as number | null,
  }),
};
