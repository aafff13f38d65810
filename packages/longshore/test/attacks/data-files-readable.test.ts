// Another user of the machine tries to read the data file: systemd creates the state folder with mode 0755, and SQLite creates files with
// 0644.

import { chmodSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longshore } from "../support/cli.ts";
import { dataFolder, startRunServer } from "../support/run-server.ts";

const modeOf = (path: string) => statSync(path).mode & 0o777;

it("another user can read no file in an existing folder of mode 0755", async () => {
  const data = dataFolder();
  mkdirSync(data);
  chmodSync(data, 0o755);
  const server = await startRunServer(data, ["--log-level", "warn"]);
  expect(await server.startRuns(1)).toEqual([201]);
  const files = readdirSync(data);
  expect(files).toEqual(expect.arrayContaining(["lock", "longshore.db", "longshore.db-shm", "longshore.db-wal"]));
  for (const name of files) expect([name, modeOf(join(data, name)) & 0o077]).toEqual([name, 0]);
  // The server did not create the folder, so it only reports the mode and does not change it.
  expect(modeOf(data)).toBe(0o755);
  expect(server.text()).toContain(`Other users may look into the data folder ${data} (mode 755): run chmod 700`);
  const { stdout } = await longshore(["doctor", "--data", data, "--port", String(server.port)]);
  expect(stdout).toContain("run chmod 700");
});

it("another user cannot read files of an earlier version after the next start", async () => {
  const data = dataFolder();
  await (await startRunServer(data)).stop();
  for (const name of ["longshore.db", "lock"]) chmodSync(join(data, name), 0o644);
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  for (const name of readdirSync(data)) expect([name, modeOf(join(data, name)) & 0o077]).toEqual([name, 0]);
});
