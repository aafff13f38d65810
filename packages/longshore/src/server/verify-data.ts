// A data folder as the source for `longshore verify`. The file is read as it was at one moment and is not changed.

import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { LongshoreError } from "../core/errors.ts";
import { blobPath } from "../store/sqlite/blob-path.ts";
import type { Database } from "../store/sqlite/driver.ts";
import { refuseStrangeFiles } from "../store/sqlite/folder.ts";
import { sqliteRows } from "../store/sqlite/row-store.ts";
import { blobRows, openSnapshot } from "../store/sqlite/snapshot.ts";
import { type Finding, finding } from "../verify/finding.ts";
import type { HistorySource } from "../verify/verify.ts";
import { historySource } from "./history-source.ts";
import { plainDialects } from "./protocols.ts";

export async function openDataFolder(directory: string): Promise<{ source: HistorySource; close(): void }> {
  const folder = resolve(directory);
  const file = join(folder, "longshore.db");
  if (!existsSync(file)) {
    throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no data file in ${folder}: name the folder of a server with --data.`);
  }
  refuseStrangeFiles(folder);
  const db = await openSnapshot(file);
  try {
    const rows = sqliteRows(db, () => null);
    return { source: historySource(rows, await plainDialects(), () => checkBlobs(db, join(folder, "blobs"))), close: () => db.close() };
  } catch (error) {
    db.close();
    throw error;
  }
}

async function* checkBlobs(db: Database, folder: string): AsyncGenerator<Finding> {
  for (const { hash, bytes } of blobRows(db)) yield* checkBlob(folder, hash, bytes);
}

function checkBlob(folder: string, hash: string, bytes: number): Finding[] {
  const path = blobPath(folder, hash);
  if (path === null) return [finding("blob-whole", hash, "the name of this blob is not a hash, so it has no file")];
  const size = statSync(path.file, { throwIfNoEntry: false })?.size;
  if (size === bytes) return [];
  const what = size === undefined ? "its file is missing" : `its file has ${size} bytes`;
  return [finding("blob-whole", hash, `${bytes} bytes of it were acknowledged and ${what}`, path.file)];
}
