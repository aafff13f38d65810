// Copies the data file and the blobs that it names, while a server may run. The file is copied in one read transaction, so the copy is
// consistent. Blobs never change: a blob that the copy names existed before the copy.

import { closeSync, constants, copyFileSync, fsyncSync, lstatSync, mkdirSync, openSync, readdirSync, renameSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { LongshoreError, toError } from "../../core/errors.ts";
import { blobPath } from "./blob-path.ts";
import { runChild } from "./child.ts";
import { openDatabase } from "./driver.ts";
import { checkFile } from "./file-check.ts";
import { blobFolderName, dataFileName } from "./folder.ts";
import { checkFilePages } from "./integrity.ts";
import { checkSchema } from "./schema.ts";

export interface BackupProgress {
  readonly what: "data" | "blobs";
  readonly done: number;
  /** The total in bytes, as far as it is known in advance. For blobs, their number. */
  readonly total: number;
}

export interface BackedUp {
  readonly bytes: number;
  readonly blobs: number;
  /** Blobs that the data file names but that do not exist: retention removed them in the meantime. */
  readonly missingBlobs: number;
}

/** An incomplete copy has another name, so that it is not mistaken for a complete one. */
const partialSuffix = ".partial";
/** How often the size of the growing copy is checked. */
const lookMs = 200;

export async function backUp(directory: string, target: string, progress: (news: BackupProgress) => void): Promise<BackedUp> {
  const source = join(directory, dataFileName);
  const total = await refuseUnfit(directory, source);
  prepareTarget(target, directory);
  const partial = join(target, `${dataFileName}${partialSuffix}`);
  closeSync(openSync(partial, "wx", 0o600));
  await copyData(source, partial, (done) => progress({ what: "data", done, total }));
  const damage = await checkFilePages(partial);
  if (damage.length > 0)
    throw new LongshoreError("LONGSHORE_DATA_DAMAGED", `The backup is damaged and cannot be used. ${damage.join(" ")}`);
  const blobs = await copyBlobs(directory, target, partial, progress);
  sync(partial);
  renameSync(partial, join(target, dataFileName));
  sync(target);
  return { bytes: statSync(join(target, dataFileName)).size, ...blobs };
}

/** Returns the maximum size of the copy in bytes. */
async function refuseUnfit(directory: string, source: string): Promise<number> {
  const { damage } = checkFile(directory);
  if (damage.length > 0) throw new LongshoreError("LONGSHORE_DATA_DAMAGED", `${damage.join(" ")} A copy of it would be damaged as well.`);
  if (statSync(source, { throwIfNoEntry: false }) === undefined)
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `There is no data file in ${directory}. Name the data folder of a server with --data.`,
    );
  const db = await openDatabase(source, { readOnly: true });
  try {
    checkSchema(db, source);
    const number = (pragma: string) => Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
    return (number("page_count") - number("freelist_count")) * number("page_size");
  } finally {
    db.close();
  }
}

function prepareTarget(target: string, directory: string): void {
  // Compared by name: links in a path that does not exist yet cannot be resolved.
  if (resolve(target).startsWith(`${resolve(directory)}${sep}`))
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${target} is inside of the data folder ${directory}. Name a folder outside of it.`);
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    if (readdirSync(target).length === 0) return;
  } catch (cause) {
    // ENOENT is the error for a dangling link.
    if (!["EEXIST", "ENOTDIR", "ENOENT"].includes(String((cause as { code?: unknown }).code))) throw cause;
  }
  throw new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `${target} is not an empty folder. Name a folder that does not exist yet, or an empty one.`,
  );
}

async function copyData(source: string, target: string, grown: (bytes: number) => void): Promise<void> {
  const timer = setInterval(() => grown(statSync(target, { throwIfNoEntry: false })?.size ?? 0), lookMs);
  try {
    await runChild(new URL("./backup-process.js", import.meta.url), [source, target]).done;
  } catch (cause) {
    const message = `The data file ${source} cannot be copied: ${toError(cause).message}.`;
    throw new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", message, { cause });
  } finally {
    clearInterval(timer);
  }
}

async function copyBlobs(
  directory: string,
  target: string,
  file: string,
  progress: (news: BackupProgress) => void,
): Promise<{ blobs: number; missingBlobs: number }> {
  const db = await openDatabase(file, { readOnly: true });
  const total = Number(db.prepare("SELECT count(*) AS count FROM blob").get()?.count);
  const folders = new Set<string>();
  let done = 0;
  let missingBlobs = 0;
  mkdirSync(join(target, blobFolderName), { mode: 0o700 });
  for (const { hash } of db.prepare("SELECT hash FROM blob ORDER BY hash").iterate()) {
    const from = blobPath(join(directory, blobFolderName), String(hash));
    const to = blobPath(join(target, blobFolderName), String(hash));
    if (to !== null && !folders.has(to.folder)) {
      mkdirSync(to.folder, { mode: 0o700 });
      folders.add(to.folder);
    }
    if (from === null || to === null || !copySynced(from.file, to.file)) missingBlobs++;
    progress({ what: "blobs", done: ++done, total });
  }
  db.close();
  for (const folder of [...folders, join(target, blobFolderName)]) sync(folder);
  return { blobs: total - missingBlobs, missingBlobs };
}

function copySynced(from: string, to: string): boolean {
  try {
    // A link or a pipe in the place of the content is not followed.
    if (!lstatSync(from).isFile()) return false;
    copyFileSync(from, to, constants.COPYFILE_EXCL);
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return false;
    throw error;
  }
  sync(to);
  return true;
}

function sync(path: string): void {
  // Windows cannot open a folder; its file system makes names durable by itself.
  if (process.platform === "win32" && statSync(path).isDirectory()) return;
  const handle = openSync(path, process.platform === "win32" ? "r+" : "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
