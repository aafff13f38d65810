// The data folder of a running server is removed or replaced. SQLite continues to write to files that no longer have a name.

import { cpSync, mkdirSync, renameSync, rmSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { dataFolder, type RunServer, startRunServer } from "../support/run-server.ts";

const starts = 50;
/** Starts that a server may accept before it checks its folder again. */
const unseenMax = 20;

/** Returns how many starts were accepted before the server checked. */
async function expectNothingAcknowledged(server: RunServer): Promise<number> {
  let unseen = 0;
  while (unseen < unseenMax && (await server.startRuns(1))[0] === 201) unseen++;
  expect(new Set(await server.startRuns(starts))).toEqual(new Set([503]));
  const { status, body } = await server.health();
  expect(status).toBe(503);
  expect(body.message).toMatch(/was removed or replaced while the server uses it/);
  return unseen;
}

it("removed: not one start is acknowledged", async () => {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  rmSync(data, { recursive: true });
  await expectNothingAcknowledged(server);
});

it("replaced by a copy: not one start is acknowledged", async () => {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  cpSync(data, `${data}-copy`, { recursive: true });
  renameSync(data, `${data}-old`);
  renameSync(`${data}-copy`, data);
  await expectNothingAcknowledged(server);
});

it("without its write-ahead log: not one start is acknowledged", async () => {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  unlinkSync(join(data, "longshore.db-wal"));
  await expectNothingAcknowledged(server);
});

it("removed under a server without work: the next readiness request fails, not only the next write", async () => {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(await server.startRuns(1)).toEqual([201]);
  expect((await server.health()).status).toBe(200);
  rmSync(data, { recursive: true });
  let asked = 0;
  while (asked < unseenMax && (await server.health()).status === 200) asked++;
  expect((await server.health()).body.message).toMatch(/was removed or replaced while the server uses it/);
});

it("moved and moved back: service resumes, with all acknowledged data", async () => {
  const data = dataFolder();
  const server = await startRunServer(data);
  expect(await server.startRuns(10)).toHaveLength(10);
  renameSync(data, `${data}-away`);
  mkdirSync(data);
  const unseen = await expectNothingAcknowledged(server);
  rmSync(data, { recursive: true });
  renameSync(`${data}-away`, data);
  expect(new Set(await server.startRuns(10))).toEqual(new Set([201]));
  expect((await server.health()).status).toBe(200);
  await server.crash();
  // At most the start whose response was an error although it was written before the check.
  const after = await startRunServer(data);
  expect(await after.countRuns()).toBeGreaterThanOrEqual(20 + unseen);
  expect(await after.countRuns()).toBeLessThanOrEqual(21 + unseen);
});
