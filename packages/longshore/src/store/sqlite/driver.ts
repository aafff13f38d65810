// The only file that knows which SQLite is underneath: Node's own from 22.13 on, else the prebuilt `@photostructure/sqlite`.
// Both export the same `DatabaseSync` class with the same errors, so everything above is one code path.

import { LongshoreError } from "../../core/errors.ts";

export type SqlValue = null | number | string | Uint8Array;
export type SqlRow = { [column: string]: unknown };

export interface Statement {
  run(...values: SqlValue[]): unknown;
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>;
}

interface DatabaseSync {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
  readonly isTransaction: boolean;
}

type Module = { DatabaseSync: new (file: string, options?: { readOnly?: boolean }) => DatabaseSync };

export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  /** Runs `work` in one transaction, which is rolled back when it throws. */
  transaction(work: () => void): void;
  close(): void;
}

export interface OpenOptions {
  /** With FULL, commits survive a power cut; with NORMAL only a crash of the process. */
  synchronous?: "FULL" | "NORMAL";
  journal?: "WAL" | "DELETE";
  /** How long a statement waits for a lock that another program (a backup, a shell) holds. */
  busyMs?: number;
  /** Changes nothing, not even the write-ahead log. */
  readOnly?: boolean;
}

const busyMsDefault = 5_000;
/**
 * Cache of pages in memory, in KiB: the tasks in flight and the upper levels of every tree. Deeper pages are in the page cache of the
 * system.
 */
const cacheKib = 32 * 1_024;
/** The write-ahead log is checkpointed after this many pages (about 16 MiB): with larger checkpoints there are fewer syncs. */
const checkpointPages = 4_000;

export async function openDatabase(file: string, options: OpenOptions = {}): Promise<Database> {
  const { DatabaseSync } = await load();
  const { busyMs = busyMsDefault, journal = "WAL", synchronous = "FULL", readOnly = false } = options;
  const db = new DatabaseSync(file, { readOnly });
  try {
    if (readOnly) {
      // The first reading statement shows whether the file can be read at all.
      db.exec(`PRAGMA busy_timeout=${busyMs}; PRAGMA query_only=ON; PRAGMA trusted_schema=OFF; SELECT count(*) FROM sqlite_schema`);
      return facade(db);
    }
    // The setting is always written, because both builds of the second driver use NORMAL with a write-ahead log by default.
    db.exec(`PRAGMA busy_timeout=${busyMs}; PRAGMA journal_mode=${journal}; PRAGMA synchronous=${synchronous}; PRAGMA foreign_keys=ON`);
    db.exec(
      `PRAGMA cache_size=-${cacheKib}; PRAGMA wal_autocheckpoint=${checkpointPages}; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF`,
    );
  } catch (error) {
    db.close();
    throw error;
  }
  return facade(db);
}

function facade(db: DatabaseSync): Database {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const rollback = db.prepare("ROLLBACK");
  return {
    prepare: (sql) => db.prepare(sql),
    exec: (sql) => db.exec(sql),
    transaction(work) {
      begin.run();
      try {
        work();
        commit.run();
      } catch (error) {
        // On a full disk SQLite has already rolled back, and a second ROLLBACK would throw.
        if (db.isTransaction) rollback.run();
        throw error;
      }
    },
    close: () => db.close(),
  };
}

/** The version of SQLite. Rejects when none can be loaded. */
export async function sqliteVersion(): Promise<string> {
  const db = await openDatabase(":memory:");
  const version = String(db.prepare("SELECT sqlite_version() AS version").get()?.version);
  db.close();
  return version;
}

/** Returns whether any connection, of any process, has the file open. Does not wait for connections. */
export async function isOpenAnywhere(file: string): Promise<boolean> {
  const { DatabaseSync } = await load();
  const db = new DatabaseSync(file);
  try {
    // Nothing is prepared here: the second driver keeps a connection open while it has prepared statements.
    db.exec("PRAGMA busy_timeout=0; PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; SELECT count(*) FROM sqlite_schema");
    return false;
  } catch (error) {
    if (isLocked(error)) return true;
    // No connection has it open, but it cannot be read. This is reported when it is opened for use.
    if (isDamaged(error)) return false;
    throw error;
  } finally {
    db.close();
  }
}

/**
 * Removes a log that is empty and that no connection uses. SQLite does this itself, under its locks, when the last connection that may
 * write closes. So a server that starts at this moment keeps its log.
 */
export async function removeIdleLog(file: string): Promise<void> {
  const { DatabaseSync } = await load();
  const db = new DatabaseSync(file);
  try {
    // As above, nothing is prepared here.
    db.exec("PRAGMA busy_timeout=0; SELECT count(*) FROM sqlite_schema");
  } catch (error) {
    // Damaged, or in use by a server: the log stays unchanged.
    if (!(isDamaged(error) || isUnavailable(error))) throw error;
  } finally {
    db.close();
  }
}

async function load(): Promise<Module> {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return withoutWarning(async () => (await import("node:sqlite" as string)) as Module);
  try {
    return (await import("@photostructure/sqlite")) as unknown as Module;
  } catch (cause) {
    throw new LongshoreError(
      "LONGSHORE_UNSUPPORTED_NODE",
      `No SQLite for Node ${process.versions.node}: use Node 22.13 or newer, or install again without --omit=optional.`,
      { cause },
    );
  }
}

/** Node 22 warns at the first load that its SQLite is experimental. The users of a server do not need this warning. */
async function withoutWarning<T>(work: () => Promise<T>): Promise<T> {
  const emit = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: never[]) => {
    if (!String(warning instanceof Error ? warning.message : warning).includes("SQLite")) emit.call(process, warning as string, ...rest);
  }) as typeof process.emitWarning;
  try {
    return await work();
  } finally {
    process.emitWarning = emit;
  }
}

/** True for conditions of the machine rather than of the data, such as a full disk. */
export function isUnavailable(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  // 5 busy, 6 locked, 8 read-only, 10 I/O, 13 full, 14 cannot open; the low byte is the primary code.
  return typeof code === "number" && [5, 6, 8, 10, 13, 14].includes(code & 0xff);
}

/** True when a row with this key exists. */
export function isTaken(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  // Constraints: 1555 of a primary key, 2067 of another unique index, 2579 of a rowid.
  return code === 1555 || code === 2067 || code === 2579;
}

/** True when another process has locked the file. */
export function isLocked(error: unknown): boolean {
  const code = (error as { errcode?: unknown }).errcode;
  return typeof code === "number" && [5, 6].includes(code & 0xff);
}

/** True when the file is not a database, or its pages contradict each other. */
export function isDamaged(error: unknown): boolean {
  const { errcode: code, message } = error as { errcode?: unknown; message?: unknown };
  // 11 malformed, 26 not a database. The second driver gives no code with rows.
  if (typeof code === "number") return [11, 26].includes(code & 0xff);
  return ["database disk image is malformed", "file is not a database"].includes(String(message));
}
