// The data folder: created for its owner only, with files that only the owner may read.

import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { LongshoreError } from "../../core/errors.ts";

export const dataFileName = "longshore.db";
export const lockFileName = "lock";
export const blobFolderName = "blobs";

/** Files that SQLite and the checks open by name. */
const openedNames = [lockFileName, ...["", "-wal", "-shm", "-journal"].map((suffix) => `${dataFileName}${suffix}`)];
const folderMode = 0o700;
const fileMode = 0o600;
const othersBits = 0o077;
/** A sticky folder such as /tmp lets every user in, but only the owner of a file may replace it. */
const stickyBit = 0o1000;

/**
 * Creates the folder if it does not exist, and makes the files in it private. `warn` is called for settings that only the owner should
 * change.
 */
export function prepareFolder(directory: string, warn: (message: string) => void = () => {}): void {
  makeFolder(directory);
  refuseStrangeFiles(directory);
  // SQLite gives the files beside a database the mode of the database.
  createPrivate(join(directory, lockFileName));
  for (const name of readdirSync(directory)) if (isOurs(name)) makePrivate(join(directory, name), warn);
  const open = openness(directory);
  if (open !== null) warn(open);
}

/** Creates the data file as a private one, if it does not exist. */
export function createDataFile(directory: string): string {
  const file = join(directory, dataFileName);
  createPrivate(file);
  return file;
}

/** Throws when something other than a regular file is in the place of a file: reading a FIFO or a device could wait without an end. */
export function refuseStrangeFiles(directory: string): void {
  const strange = strangeFile(directory);
  if (strange !== null) throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${strange.seen} ${strange.advice}`);
}

/** Describes the problem and what to do; null when each file that SQLite would open is a regular file or does not exist. Opens nothing. */
export function strangeFile(directory: string): { readonly seen: string; readonly advice: string } | null {
  for (const name of openedNames) {
    const path = join(directory, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found === undefined || found.isFile()) continue;
    const seen = `${path} is ${kindOf(found)}, expected a file.`;
    return { seen, advice: "Remove it, restore the folder from a backup, or choose another folder with --data." };
  }
  return null;
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return "a folder";
  if (found.isFIFO()) return "a FIFO";
  return found.isSocket() ? "a socket" : "a device";
}

/** A sentence with advice when other users may read or change the folder, else null. */
export function openness(directory: string): string | null {
  if (process.platform === "win32") return null;
  const { mode } = statSync(directory);
  if ((mode & othersBits) === 0) return null;
  const may = (mode & 0o022) !== 0 && (mode & stickyBit) === 0 ? "replace the files in" : "look into";
  return `Other users may ${may} the data folder ${directory} (mode ${(mode & 0o777).toString(8)}): run chmod 700 ${directory}.`;
}

function makeFolder(directory: string): void {
  try {
    mkdirSync(directory, { recursive: true, mode: folderMode });
  } catch (cause) {
    if (!["EEXIST", "ENOTDIR"].includes(String((cause as { code?: unknown }).code))) throw cause;
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `The data folder ${directory} cannot be created: it, or a folder above it, is a file. Choose a folder with --data.`,
      { cause },
    );
  }
}

function isOurs(name: string): boolean {
  return name === lockFileName || name.startsWith(dataFileName);
}

/** Never opens an existing file: closing it would drop the locks that SQLite holds on it in this process. */
function createPrivate(file: string): void {
  try {
    closeSync(openSync(file, "wx", fileMode));
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw error;
  }
}

function makePrivate(file: string, warn: (message: string) => void): void {
  const { mode } = statSync(file);
  if (process.platform === "win32" || (mode & othersBits) === 0) return;
  try {
    chmodSync(file, fileMode);
  } catch {
    // The file belongs to another user.
    warn(
      `Other users may read ${file} (mode ${(mode & 0o777).toString(8)}), and this user may not change that: run chmod 600 as its owner.`,
    );
  }
}
