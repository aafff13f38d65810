// In the place of the data file there is something that this version cannot serve. The server reports this once, with the path and what to
// do, and does not change it. `longshore doctor` reports the same.

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore, startLongshore, temporaryFolder } from "../support/cli.ts";
import { dataFolder, startRunServer } from "../support/run-server.ts";

const pageBytes = 4_096;
/** On a loaded machine, commands still end within seconds. */
const hangMs = 20_000;

/** A folder with the data of 200 runs, whose server has ended. */
async function filledFolder(end: "stop" | "crash" = "stop"): Promise<string> {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(new Set(await server.startRuns(200))).toEqual(new Set([201]));
  await server[end]();
  return data;
}

function edit(file: string, change: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  change(bytes);
  writeFileSync(file, bytes);
}

async function expectRefused(data: string, message: RegExp): Promise<void> {
  const before = readdirSync(data).filter((name) => name.startsWith("longshore.db"));
  const bytes = before.map((name) => readFileSync(join(data, name)));
  const { code, stderr, stdout } = await longshore(["start", "--port", "0", "--json", "--log-level", "warn", "--data", data]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toMatch(message);
  expect(stderr).toContain(data);
  // One sentence for a person, and no stack.
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  // The command has repaired and removed nothing.
  const isUnchanged = before.map((name, at) => readFileSync(join(data, name)).equals(bytes[at] as Buffer));
  expect(isUnchanged).toEqual(before.map(() => true));
  await expectFound(data, message);
}

async function expectFound(data: string, message: RegExp, ...args: string[]): Promise<void> {
  const { code, stdout } = await longshore(["doctor", "--json", "--port", "0", "--data", data, ...args]);
  const { findings } = JSON.parse(stdout) as { findings: { about: string; state: string; seen: string; advice: string }[] };
  const found = findings.find(({ about }) => about === "Data");
  expect({ code, state: found?.state }).toEqual({ code: 1, state: "bad" });
  expect(`${found?.seen} ${found?.advice}`).toMatch(message);
}

it("a file in the place of the folder", async () => {
  const file = join(temporaryFolder(), "data");
  writeFileSync(file, "a file");
  const { code, stderr } = await longshore(["start", "--port", "0", "--log-level", "warn", "--data", file]);
  expect(code).toBe(2);
  expect(stderr).toBe(
    `longshore: The data folder ${file} cannot be created: it, or a folder above it, is a file. Choose a folder with --data.\n`,
  );
  await expectFound(file, /is a file.*Choose a folder with --data/);
});

// Opening a FIFO waits for a writer that never comes, and no signal ends this wait.
const makeFifo = (path: string) => void execFileSync("mkfifo", [path]);
const strange: readonly [name: string, what: string, make: (path: string) => void][] = [
  ["longshore.db", "a FIFO", makeFifo],
  ["longshore.db-wal", "a FIFO", makeFifo],
  ["lock", "a FIFO", makeFifo],
  ["longshore.db", "a folder", (path) => mkdirSync(path)],
  ["longshore.db", "a device", (path) => symlinkSync("/dev/zero", path)],
];

it.each(strange)("in the place of %s, %s, which every command refuses before it is opened", async (name, what, make) => {
  const data = temporaryFolder();
  // `verify` refuses a folder without a data file before it checks other files.
  if (name !== "longshore.db") writeFileSync(join(data, "longshore.db"), "");
  make(join(data, name));
  const expected = `longshore: ${join(data, name)} is ${what}, expected a file. Remove it, restore the folder from a backup, or choose another folder with --data.\n`;
  for (const args of [["start", "--port", "0", "--log-level", "warn"], ["verify"], ["backup", join(data, "copy")]]) {
    const { code, stderr } = await bounded([...args, "--data", data]);
    expect({ command: args[0], code, stderr }).toEqual({ command: args[0], code: 2, stderr: expected });
  }
  const { stdout } = await bounded(["doctor", "--json", "--port", "0", "--data", data]);
  expect(stdout).toContain(`${join(data, name)} is ${what}, expected a file.`);
});

/** A command that hangs is ended, so that the test reports which. */
async function bounded(args: string[]) {
  const command = startLongshore(args);
  const timer = setTimeout(() => command.kill("SIGKILL"), hangMs);
  return command.ended.finally(() => clearTimeout(timer));
}

it("a file that is not a database", async () => {
  const data = await filledFolder();
  writeFileSync(join(data, "longshore.db"), "not a database, but long enough to be one".repeat(500));
  await expectRefused(data, /longshore\.db is not a SQLite database.*[Rr]estore the folder from a backup/);
  const { code, stderr } = await longshore(["start", "--port", "0", "--data", data, "--accept-damage", "--log-level", "silent"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^longshore: The data file \S+ cannot be copied to a new one: file is not a database\. .* Restore.*\n$/);
});

it("a file that was cut off", async () => {
  const data = await filledFolder();
  truncateSync(join(data, "longshore.db"), 20 * pageBytes);
  await expectRefused(data, /longshore\.db is truncated: \d+ of \d+ pages are missing.*[Rr]estore the folder/);
});

it("an empty file next to a write-ahead log, which SQLite would remove", async () => {
  const data = await filledFolder("crash");
  truncateSync(join(data, "longshore.db"), 0);
  await expectRefused(data, /longshore\.db is empty, although its write-ahead log has commits/);
});

it("an empty file in a folder that had data", async () => {
  const data = await filledFolder();
  truncateSync(join(data, "longshore.db"), 0);
  await expectRefused(data, /longshore\.db is empty, although this folder had a data file/);
});

it("a file of a newer version", async () => {
  const data = await filledFolder();
  edit(join(data, "longshore.db"), (bytes) => bytes.writeUInt32BE(99, 60));
  await expectRefused(data, /longshore\.db has schema version 99, but Longshore \S+ reads versions up to \d+.*Install that version/);
});

it("a file with a damaged page", async () => {
  const data = await filledFolder();
  edit(join(data, "longshore.db"), (bytes) => bytes.fill(0, bytes.length - 3 * pageBytes, bytes.length - 2 * pageBytes));
  await expectRefused(data, /longshore\.db is damaged/);
  await expectFound(data, /longshore\.db is damaged/, "--deep");
});
