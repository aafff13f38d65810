// The table of logs: one row for each pushed batch, or several for a large one.

import type { LogChunk } from "../log/store.ts";
import { plainTable } from "./plain-table.ts";

export interface LogRow {
  readonly id: number;
  readonly taskId: string;
  readonly runId: string | null;
  readonly attempt: number;
  readonly grant: number;
  /** The bytes that count against the quota. */
  readonly bytes: number;
  /** The chunks as written by `packed`. */
  readonly chunks: string;
}

const name = "log";
const key = ["id"];

export const logTable = plainTable<LogRow>(name, key, {
  id: "id",
  taskId: "task_id",
  runId: "run_id",
  attempt: "attempt",
  grant: "grant_count",
  bytes: "bytes",
  chunks: "chunks",
});

/** A row without its texts. */
export type LogHead = Pick<LogRow, "id" | "attempt" | "bytes">;

export const logHeadTable = plainTable<LogHead>(name, key, { id: "id", attempt: "attempt", bytes: "bytes" });

/** As JSON, which escapes NUL characters: SQLite would cut a text at the first one. */
export function packed(chunks: readonly LogChunk[]): string {
  return JSON.stringify(chunks.map((chunk) => [chunk.stream === "stdout" ? 1 : 2, chunk.sequence, chunk.at, chunk.data]));
}

export function unpacked(text: string): LogChunk[] {
  const chunks = JSON.parse(text) as [number, number, number, string][];
  return chunks.map(([stream, sequence, at, data]) => ({ stream: stream === 1 ? "stdout" : "stderr", sequence, data, at }));
}
