// The store on SQLite: a data file with rows, and files with the contents of blobs.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Store, StoredSize } from "../../engine/store.ts";
import { BlobFiles } from "./blob-files.ts";
import { runChild } from "./child.ts";
import { type DataFile, type DataFileOptions, inWords, openDataFile } from "./data-file.ts";
import type { Database } from "./driver.ts";
import { blobFolderName, dataFileName } from "./folder.ts";
import { sqliteRows } from "./row-store.ts";

/** Every page of the file is read, about 400 MB a second: in a process of its own. */
const tableSizesProgram = new URL("./table-sizes-process.js", import.meta.url);

export interface SqliteOptions extends DataFileOptions {
  /** The folder of the data file; null keeps everything in memory. */
  directory: string | null;
}

export interface SqliteStore extends Store {
  readonly db: Database;
}

export async function openSqlite(options: SqliteOptions): Promise<SqliteStore> {
  const { directory } = options;
  const file = await openDataFile(directory, options);
  try {
    return storeOn(file, directory);
  } catch (error) {
    file.close();
    throw inWords(error, directory);
  }
}

function storeOn({ db, wasServed, isGone, checkRest, close }: DataFile, directory: string | null): SqliteStore {
  const contents = new BlobFiles(directory === null ? null : join(directory, blobFolderName));
  return {
    db,
    shown: "the data file",
    wasServed,
    rows: sqliteRows(db, isGone),
    contents,
    checkRest,
    ...(directory === null ? {} : sizesOf(join(directory, dataFileName))),
    inWords: (error) => inWords(error, directory),
    close() {
      close();
      contents.close();
    },
  };
}

function sizesOf(file: string): Required<Pick<Store, "size" | "tableSizes">> {
  return { size: () => sizeOf(file), tableSizes: () => runChild<StoredSize[]>(tableSizesProgram, [file]).done };
}

/** The data file and its write-ahead log. Blobs are counted as stored bytes. */
async function sizeOf(file: string): Promise<StoredSize[]> {
  const { size } = await stat(file);
  // There is no log before the first write.
  const log = await stat(`${file}-wal`).catch(() => ({ size: 0 }));
  return [
    { name: "file", bytes: size },
    { name: "wal", bytes: log.size },
  ];
}
