// Checks the environment of a server: Node, SQLite, the data folder's disk, the clock. It changes nothing and may run next to a running
// server.

import { closeSync, existsSync, fsyncSync, mkdtempSync, openSync, rmSync, type Stats, statfsSync, statSync, writeSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { toError } from "../core/errors.ts";
import { sqliteVersion } from "../store/sqlite/driver.ts";
import { examineData, formatBytes } from "./doctor-data.ts";

export interface Finding {
  readonly about: string;
  readonly state: "ok" | "warn" | "bad";
  /** The observation. */
  readonly seen: string;
  /** What to do; absent when there is no problem. */
  readonly advice?: string;
  /** The observation as data for programs. */
  readonly figures?: Readonly<Record<string, number | string>>;
}

const syncRounds = 40;
const pageBytes = 4_096;
/** A commit waits for one sync. With a slower sync, a server at concurrency 1 does fewer than 50 tasks a second. */
const syncMsSlow = 20;
/** No disk writes a page this fast. A faster sync reached only memory, or a cache that a power cut erases. */
const syncMsImpossible = 0.02;
const freeBytesFew = 1024 * 1024 * 1024;
const freeBytesMin = 64 * 1024 * 1024;
/** The wall clock and the steady clock may differ by this much during the disk check; more means that the time is being set. */
const driftMsMax = 250;
/** File times are rounded, and a file may be written during the check. */
const futureMsMax = 2_000;
/** Longshore did not exist before this date, so an earlier clock is wrong. */
const earliestMs = Date.UTC(2025, 0, 1);

/** With `deep`, also checks all pages of a data file that is too large for the server's check at its start. */
export async function diagnose(directory: string, { deep = false }: { deep?: boolean } = {}): Promise<Finding[]> {
  const folder = resolve(directory);
  const clock = watchClock();
  return [nodeVersion(), await sqlite(), disk(folder), space(folder), await examineData(folder, deep), clock(folder)];
}

export function nodeVersion(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const seen = process.versions.node;
  if (major > 20 || (major === 20 && minor >= 19)) return { about: "Node", state: "ok", seen };
  return { about: "Node", state: "bad", seen, advice: "Longshore needs Node 20.19 or newer." };
}

async function sqlite(): Promise<Finding> {
  try {
    const version = await sqliteVersion();
    return { about: "SQLite", state: "ok", seen: version, figures: { version } };
  } catch (error) {
    return { about: "SQLite", state: "bad", seen: "cannot be loaded", advice: toError(error).message };
  }
}

/** How long a sync of a page takes on the disk of the folder, or of its nearest existing parent. */
function disk(folder: string): Finding {
  const about = "Disk";
  let place: string | undefined;
  try {
    place = mkdtempSync(join(existing(folder), ".longshore-doctor-"));
    const timings = syncTimings(join(place, "sync"));
    const median = timings[syncRounds / 2] ?? 0;
    const slowest = timings.at(-1) ?? 0;
    const seen = `fsync takes ${formatMs(median)} (median; the slowest of ${syncRounds} took ${formatMs(slowest)})`;
    const figures = { fsyncMsMedian: median, fsyncMsMax: slowest };
    if (median > syncMsSlow)
      return { about, state: "warn", seen, figures, advice: "Every commit waits this long: put --data on a faster disk." };
    if (median < syncMsImpossible)
      return { about, state: "warn", seen, figures, advice: "This is memory and not a disk: the data may not survive a power cut." };
    return { about, state: "ok", seen, figures };
  } catch (error) {
    const advice = `Make ${folder} writable for this user, or choose another with --data.`;
    return { about, state: "bad", seen: `cannot be written: ${toError(error).message}`, advice };
  } finally {
    if (place !== undefined) rmSync(place, { recursive: true, force: true });
  }
}

function syncTimings(file: string): number[] {
  const page = Buffer.alloc(pageBytes, 1);
  const handle = openSync(file, "w");
  try {
    return Array.from({ length: syncRounds }, () => {
      const before = performance.now();
      writeSync(handle, page);
      fsyncSync(handle);
      return performance.now() - before;
    }).sort((a, b) => a - b);
  } finally {
    closeSync(handle);
  }
}

function space(folder: string): Finding {
  const { bavail, bsize } = statfsSync(existing(folder));
  const free = bavail * bsize;
  const about = "Space";
  const seen = `${formatBytes(free)} free`;
  const figures = { freeBytes: free };
  if (free < freeBytesMin) return { about, state: "bad", seen, figures, advice: "New work is refused when the disk is full: make room." };
  if (free < freeBytesFew)
    return { about, state: "warn", seen, figures, advice: "Make room before the disk is full, or shorten the retention." };
  return { about, state: "ok", seen, figures };
}

/** Delays until a date use the wall clock, so it must be nearly right and should not jump. */
function watchClock(): (folder: string) => Finding {
  const wall = Date.now();
  const steady = performance.now();
  return (folder) => {
    const about = "Clock";
    const driftMs = Math.abs(Date.now() - wall - (performance.now() - steady));
    const seen = new Date().toISOString();
    const figures = { driftMs };
    const newest = Math.max(0, ...["longshore.db", "longshore.db-wal"].map((name) => changedAt(join(folder, name)) ?? 0));
    if (Date.now() < earliestMs)
      return { about, state: "bad", seen, figures, advice: "That is in the past: set the clock before serving." };
    if (newest > Date.now() + futureMsMax)
      return {
        about,
        state: "bad",
        seen,
        figures,
        advice: "The data file was written at a time that is in the future for this clock: set the clock before serving.",
      };
    if (driftMs > driftMsMax)
      return {
        about,
        state: "warn",
        seen,
        figures,
        advice: "The clock was set during this check. A running server adjusts only slowly: find out which program sets the clock.",
      };
    return { about, state: "ok", seen, figures };
  };
}

function existing(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : existing(dirname(folder));
}

function changedAt(file: string): number | undefined {
  return look(file)?.mtimeMs;
}

function look(file: string): Stats | undefined {
  try {
    return statSync(file);
  } catch {
    // The file is missing, or its folder cannot be read, which the finding about the disk reports.
    return undefined;
  }
}

function formatMs(ms: number): string {
  return `${ms < 10 ? ms.toFixed(2) : ms.toFixed(0)} ms`;
}
