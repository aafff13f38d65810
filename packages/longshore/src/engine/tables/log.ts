// The table of logs: one row for each pushed batch.

import type { LogChunk } from "../log/store.ts";
import type { TableSpec } from "../rows.ts";

export interface LogRow {
  readonly id: number;
  readonly taskId: string;
  readonly runId: string | null;
  readonly attempt: number;
  readonly grant: number;
  /** What it counts of the quota. */
  readonly bytes: number;
  /** Packed. */
  readonly chunks: string;
}

const name = "log";
const key = ["id"];

export const logTable: TableSpec<LogRow> = {
  ...{ name, key },
  columns: [
    ["id", ({ id }) => id],
    ["task_id", ({ taskId }) => taskId],
    ["run_id", ({ runId }) => runId],
    ["attempt", ({ attempt }) => attempt],
    ["grant_count", ({ grant }) => grant],
    ["bytes", ({ bytes }) => bytes],
    ["chunks", ({ chunks }) => chunks],
  ],
  of: (row) => ({
    id: row.id as number,
    taskId: row.task_id as string,
    runId: row.run_id as string | null,
    attempt: row.attempt as number,
    grant: row.grant_count as number,
    bytes: row.bytes as number,
    chunks: row.chunks as string,
  }),
};

/** Where the texts are not needed. */
export type LogHead = Pick<LogRow, "id" | "attempt" | "bytes">;

export const logHeadTable: TableSpec<LogHead> = {
  ...{ name, key },
  columns: [
    ["id", ({ id }) => id],
    ["attempt", ({ attempt }) => attempt],
    ["bytes", ({ bytes }) => bytes],
  ],
  of: (row) => ({ id: row.id as number, attempt: row.attempt as number, bytes: row.bytes as number }),
};

/** JSON escapes the NUL that SQLite would cut a text at. */
export function packed(chunks: readonly LogChunk[]): string {
  return JSON.stringify(chunks.map((chunk) => [chunk.stream === "stdout" ? 1 : 2, chunk.sequence, chunk.at, chunk.data]));
}

export function unpacked(text: string): LogChunk[] {
  const chunks = JSON.parse(text) as [number, number, number, string][];
  return chunks.map(([stream, sequence, at, data]) => ({ stream: stream === 1 ? "stdout" : "stderr", sequence, data, at }));
}
