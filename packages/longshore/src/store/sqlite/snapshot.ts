// A data file that is only read, as it was at one moment.

import { LongshoreError, toError } from "../../core/errors.ts";
import { type Database, isLocked, openDatabase } from "./driver.ts";
import { checkSchema, schemaVersion } from "./schema.ts";

/** Refuses a file that this version cannot read: it is locked, newer, or older (a migration would have to write). */
export async function openSnapshot(file: string): Promise<Database> {
  const db = await openReadOnly(file);
  try {
    refuseOlder(checkSchema(db, file), file);
    db.exec("BEGIN");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

export function* blobRows(db: Database): Generator<{ hash: string; bytes: number }, void, void> {
  for (const row of db.prepare("SELECT hash, bytes FROM blob").iterate()) yield { hash: row.hash as string, bytes: row.bytes as number };
}

function refuseOlder(version: number, file: string): void {
  if (version === schemaVersion) return;
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The data file ${file} has schema version ${version}, expected ${schemaVersion}: start a server on it once, which brings it up to date.`,
  );
}

async function openReadOnly(file: string): Promise<Database> {
  try {
    return await openDatabase(file, { readOnly: true });
  } catch (cause) {
    const why = isLocked(cause) ? "a server is using it: check the running server with --on URL" : toError(cause).message;
    throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `The data file ${file} cannot be read: ${why}.`, { cause });
  }
}
