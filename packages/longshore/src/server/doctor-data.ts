// The doctor's check of the data folder: whether a server could serve it.

import { type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { toError } from "../core/errors.ts";
import { checkFile } from "../store/sqlite/file-check.ts";
import { blobFolderName, dataFileName, openness, strangeFile } from "../store/sqlite/folder.ts";
import { readFolderMarks } from "../store/sqlite/folder-marks.ts";
import { checkBytesAtStart, checkIdleFile } from "../store/sqlite/integrity.ts";
import { schemaVersion, tooNew } from "../store/sqlite/schema.ts";
import type { Finding } from "./doctor.ts";

const about = "Data";
/**
 * SQLite checkpoints the write-ahead log when it has about 16 MiB. At four times this size, something prevents the checkpoint, such as a
 * forgotten reader.
 */
const walBytesMany = 64 * 1024 * 1024;
const restore = "Restore the folder from a backup, or start the server with --accept-damage to serve what can be read.";

export async function examineData(folder: string, deep: boolean): Promise<Finding> {
  const found = look(folder);
  if (found !== undefined && !found.isDirectory())
    return { about, state: "bad", seen: `${folder} is a file`, advice: "Choose a folder with --data." };
  try {
    const strange = strangeFile(folder);
    if (strange !== null) return { about, state: "bad", ...strange };
    const { moved, incomplete } = readFolderMarks(folder);
    if (incomplete !== null)
      return { about, state: "bad", seen: `an incomplete copy of ${incomplete.place}`, advice: "Run the same `longshore migrate` again." };
    if (moved !== null) return { about, state: "bad", seen: `moved to ${moved.place} at ${moved.at}`, advice: "Start the server there." };
    return await examineFiles(folder, deep);
  } catch (error) {
    return { about, state: "bad", seen: `cannot be read: ${toError(error).message}`, advice: `Allow this user to read ${folder}.` };
  }
}

async function examineFiles(folder: string, deep: boolean): Promise<Finding> {
  const file = join(folder, dataFileName);
  const data = look(file)?.size;
  const wal = look(`${file}-wal`)?.size ?? 0;
  const report = checkFile(folder, look(join(folder, blobFolderName)) !== undefined);
  if (report.damage.length > 0) return { about, state: "bad", seen: report.damage.join(" "), advice: restore };
  if (report.schemaVersion !== null && report.schemaVersion > schemaVersion) {
    const [seen, advice] = tooNew(file, report.schemaVersion).message.split(" wrote it. ");
    return { about, state: "bad", seen: `${seen} wrote it.`, advice };
  }
  if (data === undefined) return { about, state: "ok", seen: `no data file in ${folder} yet` };
  // Runs the same check as the server at its start, so that both find the same damage. An empty file is skipped: it has no pages, and
  // SQLite would remove its log.
  const isChecked = data > 0 && (deep || data <= checkBytesAtStart);
  const damage = isChecked ? await checkIdleFile(file) : [];
  if (damage.length > 0) return { about, state: "bad", seen: damage.join(" "), advice: restore };
  return examineSizes(folder, data, wal, isChecked);
}

function examineSizes(folder: string, dataBytes: number, walBytes: number, isChecked: boolean): Finding {
  const figures = { dataBytes, walBytes };
  const checked = isChecked ? ", all pages checked" : "";
  const seen = `${formatBytes(dataBytes)}, write-ahead log ${formatBytes(walBytes)}${checked}`;
  if (walBytes > walBytesMany) {
    const advice = "SQLite cannot shorten its log: look for another program (a backup, a shell) that keeps the data file open.";
    return { about, state: "warn", seen, figures, advice };
  }
  const open = openness(folder);
  return open === null ? { about, state: "ok", seen, figures } : { about, state: "warn", seen, figures, advice: open };
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // The file is missing, or its folder cannot be read, which the finding about the disk reports.
    return undefined;
  }
}

export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
