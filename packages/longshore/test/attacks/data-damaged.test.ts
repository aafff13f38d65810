// A disk changes bytes in the data file: when acknowledged runs are missing, the server must report this.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore } from "../support/cli.ts";
import { dataFolder, startRunServer } from "../support/run-server.ts";

const runs = 200;
const pageBytes = 4_096;

async function filledFolder(end: "stop" | "crash"): Promise<string> {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(new Set(await server.startRuns(runs))).toEqual(new Set([201]));
  await server[end]();
  return data;
}

function flip(file: string, at: (bytes: Buffer) => number): void {
  const bytes = readFileSync(file);
  const place = at(bytes);
  bytes[place] = (bytes[place] as number) ^ 0xff;
  writeFileSync(file, bytes);
}

async function expectRefused(data: string, message: RegExp): Promise<void> {
  const { code, stderr } = await longshore(["start", "--port", "0", "--data", data]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stderr).toContain("--accept-damage");
}

it("pages of zeros: the server refuses to serve until the damage is accepted, then serves the rest and reports what is lost", async () => {
  const data = await filledFolder("stop");
  const file = join(data, "longshore.db");
  const whole = readFileSync(file);
  // Each of these pages in turn, with any content, except the first page, which has the header of the file.
  const pages = whole.length / pageBytes;
  for (const page of [Math.floor(pages / 3), Math.floor(pages / 2), pages - 3]) {
    const bytes = Buffer.from(whole).fill(0, page * pageBytes, (page + 1) * pageBytes);
    writeFileSync(file, bytes);
    await expectRefused(data, /longshore\.db is damaged in the tables? \w+/);
    const server = await startRunServer(data, ["--accept-damage", "--log-level", "warn"]);
    expect(server.text()).toMatch(/longshore\.db is damaged in the tables? /);
    const left = /(\d+) rows of the table run are left/.exec(server.text())?.[1];
    expect(await server.countRuns()).toBe(Number(left ?? runs));
    expect(await server.startRuns(1)).toEqual([201]);
    expect(readFileSync(`${file}.damaged`).equals(bytes)).toBe(true);
    await server.stop();
    expect((await longshore(["doctor", "--deep", "--data", data, "--port", "0"])).stdout).toContain("all pages checked");
  }
});

it("a damaged list of tables: also with accepted damage, the server refuses to serve, changes nothing, and names what may find the rows", async () => {
  const data = await filledFolder("stop");
  const file = join(data, "longshore.db");
  const bytes = readFileSync(file);
  // The list has several pages. This one has the statement of a table, behind the first page with the header of the file.
  const page = Math.floor(bytes.indexOf("CREATE TABLE", pageBytes) / pageBytes);
  expect(page).toBeGreaterThan(0);
  bytes.fill(0, page * pageBytes, (page + 1) * pageBytes);
  writeFileSync(file, bytes);
  const { code, stderr } = await longshore(["start", "--port", "0", "--data", data, "--accept-damage", "--log-level", "silent"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^longshore: The data file \S+ cannot be copied to a new one: .* Rows may be whole.* backup.* \.recover .*\n$/);
  expect(readFileSync(file).equals(bytes)).toBe(true);
});

it("a flipped byte in the write-ahead log of a server that was killed: the lost commits after it are reported", async () => {
  const data = await filledFolder("crash");
  const log = join(data, "longshore.db-wal");
  flip(log, (bytes) => Math.floor(bytes.length / 2));
  const damaged = readFileSync(log);
  await expectRefused(data, /longshore\.db-wal is damaged: \d+ commits behind the damage cannot be read/);
  await expectRefused(data, /longshore\.db-wal is damaged: \d+ commits behind the damage cannot be read/);
  const server = await startRunServer(data, ["--accept-damage", "--log-level", "warn"]);
  const lost = Number(/(\d+) commits behind the damage/.exec(server.text())?.[1]);
  // The start of a run is one commit.
  expect(lost).toBe(runs - (await server.countRuns()));
  expect(readFileSync(`${log}.damaged`).equals(damaged)).toBe(true);
});

it("a server that was killed in the middle of a write starts without a warning, with all acknowledged data", async () => {
  const data = await filledFolder("crash");
  const log = join(data, "longshore.db-wal");
  const whole = readFileSync(log);
  // A commit that was being written: its last page is incomplete.
  writeFileSync(log, Buffer.concat([whole, whole.subarray(32, 32 + pageBytes)]));
  const server = await startRunServer(data, ["--log-level", "warn"]);
  expect(await server.countRuns()).toBe(runs);
  expect(server.text()).not.toContain("damaged");
  expect(existsSync(`${log}.damaged`)).toBe(false);
});

it("pages of zeros in a file that is too large to be checked at the start: the server stops writing when it finds them", async () => {
  const data = dataFolder();
  const first = await startRunServer(data);
  expect(new Set(await first.startRuns(20, 1_000_000))).toEqual(new Set([201]));
  // Ended runs are not read at the start.
  await first.cancelRuns();
  await first.stop();
  const file = join(data, "longshore.db");
  const bytes = readFileSync(file);
  expect(bytes.length).toBeGreaterThan(16 * 1024 * 1024);
  writeFileSync(file, bytes.fill(0, bytes.length - 100 * pageBytes, bytes.length - 97 * pageBytes));
  const server = await startRunServer(data, ["--log-level", "warn"]);
  await server.printed(/longshore\.db is damaged in the table/);
  expect(await server.startRuns(1)).toEqual([503]);
  const { status, body } = await server.health();
  expect(status).toBe(503);
  expect(body.message).toContain("The data file is damaged and is not written any more");
  // Callers without a token learn nothing about the machine.
  expect(body.message).not.toContain(data);
});

it("pages of zeros in the place of open runs, in such a file: the server refuses to start", async () => {
  const data = dataFolder();
  const first = await startRunServer(data);
  expect(new Set(await first.startRuns(20, 1_000_000))).toEqual(new Set([201]));
  await first.stop();
  const file = join(data, "longshore.db");
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0, pageBytes * 2));
  await expectRefused(data, /longshore\.db is damaged: database disk image is malformed/);
});
