// Checks the pages of a data file with SQLite's own integrity check. A small file is checked before it is served. A large one is checked in
// a separate process while the server works, because SQLite's check would block the event loop. This is the full check, which costs five
// times as much as the quick one. Only it compares the order of keys, and so finds a page that was written to the place of another page.

import { existsSync } from "node:fs";
import { setPriority } from "node:os";
import { runChild } from "./child.ts";
import { type Database, isDamaged, openDatabase, removeIdleLog } from "./driver.ts";
import { strangePart } from "./schema.ts";

/** Maximum size that is checked before serving: 0.15 s at about 110 MB a second. */
export const checkBytesAtStart = 16 * 1024 * 1024;
/** Maximum number of reported findings. The first ones are enough for a person. */
const findingsMax = 5;
/** Lower priority than the server. */
const niceness = 10;
const program = new URL("./integrity-process.js", import.meta.url);

/** One sentence for each contradiction; empty when there is none. */
export function checkPages(db: Database, file: string): string[] {
  const found = check(db, "");
  if (found.length === 0) return [];
  const tables = damagedTables(db);
  const where = tables.length === 0 ? "" : ` in ${tables.length === 1 ? "the table" : "the tables"} ${tables.join(", ")}`;
  return [`The data file ${file} is damaged${where}: ${found.join("; ")}.`];
}

/** The same for a file that this process has not opened; it is opened for reading. A trigger or view of another program counts as damage. */
export async function checkFilePages(file: string): Promise<string[]> {
  try {
    const db = await openDatabase(file, { readOnly: true });
    try {
      const strange = strangePart(db, file);
      return strange === null ? checkPages(db, file) : [strange];
    } finally {
      db.close();
    }
  } catch (error) {
    if (!isDamaged(error)) throw error;
    return [`The data file ${file} is damaged: ${(error as Error).message}.`];
  }
}

/** The same for a folder that no server uses at the moment. SQLite creates an empty log to read a file; this function removes it again. */
export async function checkIdleFile(file: string): Promise<string[]> {
  if (existsSync(`${file}-wal`)) return checkFilePages(file);
  const work = runChild<string[]>(program, [file]);
  try {
    return await work.done;
  } finally {
    await work.ended;
    await removeIdleLog(file);
  }
}

function damagedTables(db: Database): string[] {
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
    return tables.map(({ name }) => String(name)).filter((name) => check(db, `('${name}')`).length > 0);
  } catch (error) {
    // The list of tables itself cannot be read.
    if (isDamaged(error)) return [];
    throw error;
  }
}

function check(db: Database, what: string): string[] {
  try {
    const rows = db.prepare(`PRAGMA integrity_check${what}`).iterate();
    const findings: string[] = [];
    for (const row of rows) {
      if (row.integrity_check !== "ok") findings.push(String(row.integrity_check));
      if (findings.length === findingsMax) break;
    }
    return findings;
  } catch (error) {
    if (!isDamaged(error)) throw error;
    return [(error as Error).message];
  }
}

export interface BackgroundCheck {
  /** Stops the check; no finding is reported after that. */
  stop(): void;
}

/** Checks in a separate process. `done` receives the findings; `failed` receives an error when the check could not run. */
export function checkInBackground(file: string, done: (damage: string[]) => void, failed: (error: Error) => void): BackgroundCheck {
  const work = runChild<string[]>(program, [file]);
  if (work.pid !== undefined) lowerPriority(work.pid);
  let isStopped = false;
  work.done.then(
    (damage) => isStopped || done(damage),
    (error: Error) => isStopped || failed(error),
  );
  return {
    stop() {
      isStopped = true;
      work.stop();
    },
  };
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, niceness);
  } catch {
    // The process has already ended, or the system does not allow a lower priority. The check runs anyway.
  }
}
