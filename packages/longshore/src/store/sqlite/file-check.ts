// Checks the files of a data folder without opening them as a database: damage is found before SQLite repairs, overwrites or removes
// anything. It does not touch SQLite's locks, so another process may do this while a server runs.

import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";
import { dataFileName, refuseStrangeFiles } from "./folder.ts";
import { readWal, type WalReport } from "./wal-check.ts";

export interface FileReport {
  /** The schema version that the file records; null without a readable file. */
  readonly schemaVersion: number | null;
  /** One sentence for each problem; empty when there is none. */
  readonly damage: readonly string[];
}

interface FileHeader {
  readonly pageBytes: number;
  readonly pageCount: number;
  readonly schemaVersion: number;
}

const headerBytes = 100;
const magic = "SQLite format 3\0";

/** `hadData`: the folder is known to have had a data file. */
export function checkFile(directory: string, hadData = false): FileReport {
  const file = join(directory, dataFileName);
  refuseStrangeFiles(directory);
  const wal = readWal(`${file}-wal`);
  const start = readStart(file);
  if (start === null || start.bytes === 0) return { schemaVersion: null, damage: missing(file, start !== null, wal, hadData) };
  const header = parseHeader(start.header);
  // A change outside the log was interrupted, for example by a power cut at the first start: SQLite undoes it with this journal.
  if (existsSync(`${file}-journal`)) return { schemaVersion: header?.schemaVersion ?? null, damage: lost(file, wal) };
  if (header === null) {
    return { schemaVersion: null, damage: [`The data file ${file} is not a SQLite database: its first bytes are wrong.`] };
  }
  return { schemaVersion: header.schemaVersion, damage: [...truncated(file, start.bytes, header, wal), ...lost(file, wal)] };
}

function missing(file: string, exists: boolean, wal: WalReport, hadData: boolean): string[] {
  // SQLite would remove a log without its file, and with it committed data.
  if (wal.pageCount === null && wal.lostCommits === 0 && !hadData) return [];
  const why = wal.pageCount === null ? "this folder had a data file" : "its write-ahead log has commits";
  return [`The data file ${file} ${exists ? "is empty" : "is missing"}, although ${why}.`];
}

function truncated(file: string, bytes: number, header: FileHeader, wal: WalReport): string[] {
  const expected = wal.pageCount ?? header.pageCount;
  const there = Math.floor(bytes / header.pageBytes);
  let absent = 0;
  for (let page = there + 1; page <= expected; page++) if (!wal.pages.has(page)) absent++;
  return absent === 0 ? [] : [`The data file ${file} is truncated: ${absent} of ${expected} pages are missing.`];
}

function lost(file: string, { lostCommits }: WalReport): string[] {
  if (lostCommits === 0) return [];
  return [`The write-ahead log ${file}-wal is damaged: ${lostCommits} commits behind the damage cannot be read.`];
}

function parseHeader(header: Buffer): FileHeader | null {
  if (header.length < headerBytes || header.toString("latin1", 0, magic.length) !== magic) return null;
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  if (pageBytes < 512 || (pageBytes & (pageBytes - 1)) !== 0) return null;
  // The page count is valid only when the same change has written both numbers.
  const isCounted = header.readUInt32BE(24) === header.readUInt32BE(92);
  return { pageBytes, pageCount: isCounted ? header.readUInt32BE(28) : 0, schemaVersion: header.readUInt32BE(60) };
}

function readStart(file: string): { bytes: number; header: Buffer } | null {
  let handle: number;
  try {
    handle = openSync(file, "r");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return null;
    throw error;
  }
  try {
    const header = Buffer.alloc(headerBytes);
    const read = readSync(handle, header, 0, headerBytes, 0);
    return { bytes: fstatSync(handle).size, header: header.subarray(0, read) };
  } finally {
    closeSync(handle);
  }
}
