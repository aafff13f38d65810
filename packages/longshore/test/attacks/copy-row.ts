// Fills tables of a data file faster than an engine could.

import type { Database } from "../../src/store/sqlite/driver.ts";

/** Copies one row this many times, with some columns computed from `n`. */
export function copyRow(db: Database, table: string, count: number, made: Readonly<Record<string, string>>, where = ""): void {
  const names = db
    .prepare(`PRAGMA table_info(${table})`)
    .all()
    .map((row) => row.name as string);
  db.exec(`INSERT INTO ${table} (${names.join(", ")})
    WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count})
    SELECT ${names.map((name) => made[name] ?? name).join(", ")} FROM c, (SELECT * FROM ${table} ${where} LIMIT 1)`);
}
