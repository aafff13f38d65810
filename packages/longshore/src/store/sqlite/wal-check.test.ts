import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { openDatabase } from "./driver.ts";
import { readWal } from "./wal-check.ts";

const headerBytes = 32;
const frameBytes = 24 + 4_096;
const commits = 20;

/** A copy of a database's log with this many commits, as it is after a crash. */
async function crashedLog(rowsOfCommit = 1): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "longshore-wal-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const db = await openDatabase(join(folder, "a.db"));
  db.exec("CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT)");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  const insert = db.prepare("INSERT INTO row (text) VALUES (?)");
  for (let at = 0; at < commits; at++)
    db.transaction(() => {
      for (let row = 0; row < rowsOfCommit; row++) insert.run("x".repeat(3_000));
    });
  const copy = join(folder, "copy-wal");
  copyFileSync(join(folder, "a.db-wal"), copy);
  db.close();
  return copy;
}

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes[at] = (bytes[at] as number) ^ 0xff;
  writeFileSync(file, bytes);
}

describe("a write-ahead log", () => {
  it("that is intact has lost nothing", async () => {
    const file = await crashedLog();
    const { lostCommits, pageCount, pages } = readWal(file);
    expect(lostCommits).toBe(0);
    expect(pageCount).toBeGreaterThanOrEqual(commits);
    expect(pages.size).toBeGreaterThanOrEqual(commits);
  });

  it("that does not exist, is empty or is not a log has lost nothing", async () => {
    const file = await crashedLog();
    expect(readWal(`${file}-not-there`).lostCommits).toBe(0);
    writeFileSync(file, "");
    expect(readWal(file)).toMatchObject({ lostCommits: 0, pageCount: null });
    writeFileSync(file, Buffer.alloc(10_000, 7));
    expect(readWal(file)).toMatchObject({ lostCommits: 0, pageCount: null });
  });

  it.each([
    ["the content of a page", headerBytes + 24 + 100],
    ["the number of a page", headerBytes + 3],
    ["the salt of a frame", headerBytes + 9],
    ["the checksum of a frame", headerBytes + 17],
    ["the header of the log", 13],
  ])("with a flipped byte in %s has lost every commit behind it that was on disk", async (_, place) => {
    const file = await crashedLog();
    flip(file, place < headerBytes ? place : place + 4 * frameBytes);
    const { lostCommits } = readWal(file);
    expect(lostCommits).toBeGreaterThan(commits / 2);
    expect(lostCommits).toBeLessThanOrEqual(commits);
  });

  it("whose last commit is incomplete in any of its pages is normal after a power cut", async () => {
    const file = await crashedLog(5);
    const whole = readFileSync(file);
    const frames = Math.floor((statSync(file).size - headerBytes) / frameBytes);
    const isCommit = (at: number) => whole.readUInt32BE(headerBytes + at * frameBytes + 4) > 0;
    const first = Array.from({ length: frames }, (_, at) => at).findLast((at) => at < frames - 1 && isCommit(at)) as number;
    for (let at = first + 1; at < frames; at++) {
      writeFileSync(file, whole);
      flip(file, headerBytes + at * frameBytes + 24 + 8);
      expect(readWal(file).lostCommits).toBe(0);
    }
    truncateSync(file, whole.length - 100);
    expect(readWal(file).lostCommits).toBe(0);
  });

  it("is checked without the frames of an earlier use of the file", async () => {
    const file = await crashedLog();
    const earlier = readFileSync(file);
    const later = readFileSync(await crashedLog());
    // Three commits of the later use, then frames of the earlier use.
    const kept = headerBytes + 6 * frameBytes;
    writeFileSync(file, Buffer.concat([later.subarray(0, kept), earlier.subarray(kept)]));
    const { lostCommits, pageCount } = readWal(file);
    expect(lostCommits).toBe(0);
    expect(pageCount).toBeGreaterThan(1);
  });
});
