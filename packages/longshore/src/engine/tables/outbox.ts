// The table of the outbox.

import type { OutboxMessage, Outcome, StoredMessage } from "../../core/bus/outbox-store.ts";
import type { TableSpec } from "../rows.ts";
import { plainTable } from "./plain-table.ts";

export interface OutboxRow extends StoredMessage {
  readonly owner: string;
  readonly state: Outcome["state"];
  readonly error: string | null;
  readonly endedAt: number | null;
}

export const outboxTable: TableSpec<OutboxRow> = {
  name: "outbox",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["print", printOf],
    ["topic", ({ topic }) => topic],
    ["key", ({ key }) => key],
    ["dedup_id", ({ dedupId }) => dedupId],
    ["value", ({ value }) => Buffer.from(value)],
    ["retry", ({ retry }) => retry ?? 0],
    ["owner", ({ owner }) => owner],
    ["state", ({ state }) => state],
    ["attempts", ({ attempts }) => attempts],
    ["due_at", ({ dueAt }) => dueAt],
    ["error", ({ error }) => error],
    ["ended_at", ({ endedAt }) => endedAt],
  ],
  of: (row) => ({
    id: row.id as number,
    topic: row.topic as string,
    key: row.key as string,
    dedupId: row.dedup_id as string,
    value: Buffer.from(row.value as Uint8Array).toString("utf8"),
    retry: row.retry as number,
    owner: row.owner as string,
    state: row.state as Outcome["state"],
    attempts: row.attempts as number,
    dueAt: row.due_at as number,
    error: row.error as string | null,
    endedAt: row.ended_at as number | null,
  }),
};

export const outboxIdTable = plainTable<Pick<OutboxRow, "id">>("outbox", ["id"], { id: "id" });

/** A text that identifies a message. A message with the same text as an earlier one is the earlier one, added again. */
export function printOf({ topic, key, dedupId }: OutboxMessage): string {
  return JSON.stringify([topic, key, dedupId]);
}
