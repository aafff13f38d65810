// Rows that belong to runs and tasks which were removed, a slice at a time. A slice is bounded in rows and in bytes: SQLite walks all pages
// that it frees, and a single row may have thousands.

import { attemptBytes } from "../board/attempts.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import type { Tx } from "../tx.ts";
import type { Database, SqlValue } from "../../store/sqlite/driver.ts";

/** Rows that one transaction removes: about 2 ms. */
const rowsMax = 200;
/** Bytes of their texts, besides those of the first. */
const bytesMax = 4 * 1_048_576;

/** What is left of a slice. */
interface Budget {
  rows: number;
  bytes: number;
}

interface Table {
  readonly name: string;
  readonly key: string;
  /** Which of its rows belong to what was noted. */
  readonly on: string;
  /** What a row has in bytes; as the room counts it where there is one. */
  readonly bytes?: string;
  readonly room?: Room;
}

/** Inside a transaction: removes the next rows of what was noted. False when none are left. */
export function prepareSlices(db: Database, stored: StoredBytes): (tx: Tx) => boolean {
  const steps = tablesOf(stored).map((table) => prepareTable(db, table));
  return (tx) => {
    const budget: Budget = { rows: rowsMax, bytes: bytesMax };
    for (const remove of steps) if (!remove(tx, budget)) return true;
    return false;
  };
}

function tablesOf(stored: StoredBytes): Table[] {
  // '.' and '/' are neighbours, so this is the range of keys that begin with '<run id>.'.
  const ofRun = (column: string) => `${column} > pruned.id || '.' AND ${column} < pruned.id || '/'`;
  const of = (column: string) => `${column} = pruned.id`;
  const log = { name: "log", key: "id", bytes: "log.bytes", room: stored.of("logs") };
  const part = {
    ...{ name: "part", key: "task_id, life, sequence", room: stored.of("parts") },
    bytes: `${rowBytes} + octet_length(part.uid) + octet_length(part.value)`,
  };
  const uid = { name: "part_uid", key: "task_id, life, first" };
  const read = { name: "part_read", key: "reader, reader_life, source, source_life, first" };
  const attempt = { name: "attempt", key: "task_id, grant_count, attempt", bytes: attemptBytes, room: stored.of("attempts") };
  const texts = "octet_length(task.input) + coalesce(octet_length(task.output), 0)";
  return [
    { ...log, on: of("log.task_id") },
    { ...log, on: of("log.run_id") },
    { ...part, on: of("part.task_id") },
    { ...part, on: ofRun("part.task_id") },
    { ...uid, on: of("part_uid.task_id") },
    { ...uid, on: ofRun("part_uid.task_id") },
    { ...read, on: of("part_read.reader") },
    { ...read, on: ofRun("part_read.reader") },
    { name: "node_join", key: "run_id, node", on: of("node_join.run_id") },
    { ...attempt, on: of("attempt.task_id") },
    { ...attempt, on: ofRun("attempt.task_id") },
    { name: "task", key: "id", on: ofRun("task.id"), bytes: texts },
  ];
}

/** Removes rows of one table. False when the budget ended before they did. */
function prepareTable(db: Database, { name, key, on, bytes = String(rowBytes), room }: Table): (tx: Tx, budget: Budget) => boolean {
  const columns = key.split(", ");
  const keys = columns.map((column) => `${name}.${column} AS ${column}`).join(", ");
  // One statement for all noted ids: one for each id was four times as slow.
  const next = db.prepare(`SELECT ${keys}, ${bytes} AS bytes FROM pruned CROSS JOIN ${name} ON ${on} LIMIT ?`);
  const remove = db.prepare(`DELETE FROM ${name} WHERE ${columns.map((column) => `${column} = ?`).join(" AND ")}`);
  return (tx, budget) => {
    const wanted = budget.rows;
    // At least one, so that a row above the budget is removed as well; one by one, because only then the bytes can end it.
    const rows = next.all(Math.max(1, wanted));
    let removed = 0;
    let freed = 0;
    for (const row of rows) {
      const size = row.bytes as number;
      if ((budget.rows < rowsMax || removed > 0) && freed + size > budget.bytes) break;
      remove.run(...columns.map((column) => row[column] as SqlValue));
      removed++;
      freed += size;
    }
    budget.rows -= removed;
    budget.bytes -= freed;
    room?.addNow(tx, -freed);
    return removed === rows.length && removed < Math.max(1, wanted);
  };
}
