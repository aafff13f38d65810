// Opens the data file of a folder. The file is locked, made private, checked, and updated to the newest schema. Each refusal is one
// sentence with the path and what to do.

import { copyFileSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { LongshoreError, toError } from "../../core/errors.ts";
import { refuseMarked } from "../marks.ts";
import { runChild } from "./child.ts";
import { damagedError, damagedWhileServing } from "./damage.ts";
import { type Database, isDamaged, isOpenAnywhere, isUnavailable, type OpenOptions, openDatabase } from "./driver.ts";
import { checkFile } from "./file-check.ts";
import { blobFolderName, createDataFile, dataFileName, prepareFolder } from "./folder.ts";
import { readFolderMarks, undoOf } from "./folder-marks.ts";
import { watchIdentity } from "./identity.ts";
import { type BackgroundCheck, checkBytesAtStart, checkInBackground, checkPages } from "./integrity.ts";
import { type FolderLock, lockFolder, recordLock, refuseIfShared } from "./lock.ts";
import { checkSchema, migrate } from "./schema.ts";

export interface DataFileOptions {
  synchronous?: OpenOptions["synchronous"];
  open?: typeof openDatabase;
  acceptDamage?: boolean;
  /** Also open data that a migration has marked. Default: they are refused. */
  acceptMarked?: boolean;
  warn?: (message: string) => void;
}

export interface DataFile {
  readonly db: Database;
  /** True when a server has opened the file before: it may be an older copy of data that changed later. */
  readonly wasServed: boolean;
  /** Returns an error when the file is not in its place any more. */
  isGone(): LongshoreError | null;
  /** Runs the checks that take too long for the start, and calls `refuse` when data is damaged. */
  checkRest(refuse: (damage: LongshoreError) => void): void;
  close(): void;
}

export async function openDataFile(directory: string | null, options: DataFileOptions): Promise<DataFile> {
  if (directory === null) return inMemory(options);
  try {
    prepareFolder(directory, options.warn);
    const lock = await lockFolder(directory);
    try {
      if (!options.acceptMarked) refuseMarked(directory, readFolderMarks(directory), undoOf(directory));
      return await openLocked(directory, lock, options);
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw inWords(error, directory);
  }
}

async function inMemory({ open = openDatabase, synchronous }: DataFileOptions): Promise<DataFile> {
  const db = await open(":memory:", { synchronous });
  migrate(db);
  return { db, wasServed: false, isGone: () => null, checkRest: () => {}, close: () => db.close() };
}

async function openLocked(directory: string, lock: FolderLock, options: DataFileOptions): Promise<DataFile> {
  const { warn = () => {} } = options;
  const judge = (damage: readonly string[]) => {
    if (damage.length === 0) return;
    if (options.acceptDamage !== true) throw damagedError(damage);
    for (const sentence of damage) warn(`${sentence} The readable data is served, because damage was accepted.`);
  };
  const { damage } = checkFile(directory, existsSync(join(directory, blobFolderName)));
  judge(damage);
  const file = createDataFile(directory);
  if (damage.length > 0) keepDamagedLog(file, warn);
  const wasOpen = await isOpenAnywhere(file);
  if (options.acceptDamage === true) await salvageIfDamaged(directory, file, wasOpen, warn);
  const isChecked = options.acceptDamage === true || statSync(file).size <= checkBytesAtStart;
  const db = await (options.open ?? openDatabase)(file, { synchronous: options.synchronous });
  let wasServed: boolean;
  try {
    checkSchema(db, file);
    refuseIfShared(db, lock, directory, wasOpen);
    if (isChecked) judge(checkPages(db, file));
    migrate(db, undefined, file);
    wasServed = recordLock(db, lock);
  } catch (error) {
    db.close();
    throw error;
  }
  let check: BackgroundCheck | undefined;
  return {
    db,
    wasServed,
    isGone: watchIdentity(file),
    checkRest(refuse) {
      if (isChecked) return;
      const found = (sentences: readonly string[]) => {
        try {
          judge(sentences);
        } catch (error) {
          warn((error as Error).message);
          refuse(damagedWhileServing(error));
        }
      };
      check = checkInBackground(file, found, (error) => warn(`The data file ${file} could not be checked: ${error.message}.`));
    },
    close() {
      check?.stop();
      db.close();
      lock.release();
    },
  };
}

/** With accepted damage, a file of any size is checked and repaired before it is served. */
async function salvageIfDamaged(directory: string, file: string, wasOpen: boolean, warn: (message: string) => void): Promise<void> {
  if (wasOpen) {
    const message = `Another program has the data file of ${directory} open. Stop it first: a damaged file is replaced by a new file with the readable data.`;
    throw new LongshoreError("LONGSHORE_CONFLICT", message);
  }
  try {
    for (const sentence of await runChild<string[]>(new URL("./salvage-process.js", import.meta.url), [file]).done) warn(sentence);
  } catch (cause) {
    // Without the list of tables, SQLite does not find the pages of a table. Their numbers differ from file to file.
    const why = `${toError(cause).message}. Rows may be whole, but without the list of tables at its beginning none can be found`;
    const message = `The data file ${file} cannot be copied to a new one: ${why}. Restore the folder from a backup. Without one, keep a copy of the folder: the command .recover of the program sqlite3 may find rows.`;
    throw new LongshoreError("LONGSHORE_DATA_DAMAGED", message, { cause });
  }
}

/** SQLite overwrites a log that it cannot read; a copy keeps it for a later search for lost data. */
function keepDamagedLog(file: string, warn: (message: string) => void): void {
  const log = `${file}-wal`;
  if (!existsSync(log)) return;
  const copy = `${log}.damaged`;
  copyFileSync(log, copy);
  warn(`A copy of the damaged write-ahead log is kept as ${copy}.`);
}

/** An unusable folder is a problem of the machine and not of the program, so the error says what to do. */
export function inWords(error: unknown, directory: string | null): unknown {
  if (directory === null || error instanceof LongshoreError) return error;
  if (isDamaged(error))
    return damagedError([`The data file ${join(directory, dataFileName)} is damaged: ${toError(error).message}.`], error);
  const { code } = error as { code?: unknown };
  if (!(isUnavailable(error) || ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM"].includes(String(code)))) return error;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data folder ${directory} cannot be used: ${toError(error).message}. Make room or allow writing, or choose another folder with --data.`,
    { cause: error },
  );
}
