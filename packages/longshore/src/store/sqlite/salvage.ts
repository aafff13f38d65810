// Copies the readable data of a damaged data file into a new file, which replaces it. The damaged file is kept beside the new one.

import { linkSync, renameSync, rmSync, statSync } from "node:fs";
import { type Database, isDamaged, openDatabase, type SqlRow, type SqlValue } from "./driver.ts";
import { countAmounts, migrate } from "./schema.ts";

/** The ending of the name under which the damaged file is kept. */
const damagedSuffix = ".damaged";
const salvagedSuffix = ".salvaged";

/** Must be called while no other connection has the file open. Returns a sentence about what was copied. */
export async function salvage(file: string): Promise<string> {
  const target = `${file}${salvagedSuffix}`;
  for (const name of [target, `${target}-wal`, `${target}-shm`]) rmSync(name, { force: true });
  const from = await openDatabase(file);
  const to = await openDatabase(target);
  let lossy: string[];
  try {
    // The log belongs to the damaged file. If it stayed, SQLite would use it as the log of the new file.
    from.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    to.exec("PRAGMA foreign_keys=OFF");
    migrate(to, Number(from.prepare("PRAGMA user_version").get()?.user_version), target);
    lossy = copyTables(from, to);
    recount(to);
    to.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    from.close();
    to.close();
  }
  replace(file, target);
  const lost = lossy.length === 0 ? "Every row could be read." : `Rows were lost: ${lossy.join(", ")}.`;
  return `${lost} The damaged file is kept as ${file}${damagedSuffix}.`;
}

/** Returns the tables that lost rows, with the number of rows that could be read. */
function copyTables(from: Database, to: Database): string[] {
  const tables = to.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  const lossy: string[] = [];
  for (const { name } of tables) {
    to.transaction(() => {
      const { rows, isWhole } = copyTable(from, to, String(name));
      if (!isWhole) lossy.push(`${rows} rows of the table ${name} are left`);
    });
  }
  return lossy;
}

/** Computes the sums again, because lost rows do not count any more. A file of an early version has no sums. */
function recount(db: Database): void {
  const table = db.prepare("SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'amount'").get();
  if (table !== undefined) db.transaction(() => db.exec(countAmounts));
}

/** Reads from the beginning up to the damage, and then from the end back to the damage. */
function copyTable(from: Database, to: Database, table: string): { rows: number; isWhole: boolean } {
  const info = to.prepare(`PRAGMA table_info(${table})`).all();
  const keys = info.filter(({ pk }) => Number(pk) > 0).sort((a, b) => Number(a.pk) - Number(b.pk));
  const names = info.map(({ name }) => String(name));
  const isRowid = hasRowid(to, table);
  // The rowid identifies a row, so that no row is copied twice.
  const columns = isRowid ? ["rowid", ...names] : names;
  const order = (direction: string) => (isRowid ? ["rowid"] : keys.map(({ name }) => String(name))).map((key) => `${key} ${direction}`);
  const insert = to.prepare(`INSERT OR IGNORE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`);
  const select = (direction: string) =>
    from.prepare(
      `SELECT ${isRowid ? "rowid AS rowid, " : ""}${names.join(", ")} FROM ${table} NOT INDEXED ORDER BY ${order(direction).join(", ")}`,
    );
  let rows = 0;
  const copy = (row: SqlRow): boolean => {
    const values = columns.map((name) => row[name] as SqlValue);
    const isNew = Number((insert.run(...values) as { changes: number | bigint }).changes) > 0;
    if (isNew) rows++;
    return isNew;
  };
  const isWhole = readable(() => {
    for (const row of select("ASC").iterate()) copy(row);
  });
  if (!isWhole) {
    readable(() => {
      for (const row of select("DESC").iterate()) if (!copy(row)) break;
    });
  }
  return { rows, isWhole };
}

function readable(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (isDamaged(error)) return false;
    throw error;
  }
}

function hasRowid(db: Database, table: string): boolean {
  try {
    db.prepare(`SELECT rowid FROM ${table} LIMIT 0`);
    return true;
  } catch {
    return false;
  }
}

/** Replaces the file in one step, so that there is always a data file: the damaged one or the new one. */
function replace(file: string, target: string): void {
  if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) throw new Error(`${file}-wal still holds commits.`);
  rmSync(`${file}${damagedSuffix}`, { force: true });
  linkSync(file, `${file}${damagedSuffix}`);
  for (const name of [file, target]) for (const suffix of ["-wal", "-shm"]) rmSync(`${name}${suffix}`, { force: true });
  renameSync(target, file);
}
