// One server per data folder: two would hand out the same tasks. The lock is SQLite's own, on a separate file beside the data file. So a
// killed process leaves no lock behind, and backups and other readers may open the data file. The data file names its lock file. If the
// lock file is removed, the old server may still run and hold the removed one. So a server with a new lock file starts only when no other
// program has the data file open.

import { statSync } from "node:fs";
import { join } from "node:path";
import { LongshoreError } from "../../core/errors.ts";
import { type Database, isLocked, openDatabase } from "./driver.ts";
import { lockFileName } from "./folder.ts";
import { readProperty, writeProperty } from "./properties.ts";

export interface FolderLock {
  /** The id of this file. Another file in its place has another id. */
  readonly id: string;
  release(): void;
}

/** The name under which the data file records its lock. */
const lockProperty = "lock";

export async function lockFolder(directory: string): Promise<FolderLock> {
  const file = join(directory, lockFileName);
  let db: Database | undefined;
  try {
    db = await openDatabase(file, { synchronous: "NORMAL", journal: "DELETE", busyMs: 0 });
    db.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    db?.close();
    if (!isLocked(cause)) throw cause;
    throw new LongshoreError(
      "LONGSHORE_CONFLICT",
      `Another Longshore server is using ${directory}: stop it first, or choose another folder with --data.`,
      { cause },
    );
  }
  const held = db;
  return {
    id: String(statSync(file, { bigint: true }).ino),
    release() {
      // `close` alone does not release the lock: the driver keeps a connection open until the garbage collector has removed its prepared
      // statements.
      held.exec("ROLLBACK");
      held.close();
    },
  };
}

/** `wasOpen`: another connection had the data file open when this server took the lock. */
export function refuseIfShared(db: Database, lock: FolderLock, directory: string, wasOpen: boolean): void {
  // With the same lock file as before, the other connection can only be a reader.
  if (!wasOpen || readProperty(db, lockProperty) === lock.id) return;
  throw new LongshoreError(
    "LONGSHORE_CONFLICT",
    `The lock file of ${directory} was removed, and another program has the data file open: another Longshore server may be using it. ` +
      "Stop that program, or wait until it ends if it is a backup. Do not remove the lock file: a server that has ended leaves no lock.",
  );
}

/** Records in the data file that this is its lock file. Returns whether the data file had recorded a lock file before. */
export function recordLock(db: Database, lock: FolderLock): boolean {
  const before = readProperty(db, lockProperty);
  if (before !== lock.id) db.transaction(() => writeProperty(db, lockProperty, lock.id));
  return before !== null;
}
