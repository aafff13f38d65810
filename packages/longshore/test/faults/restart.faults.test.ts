// Single kills at the worst time: of the server right after a response or while leases are valid, and of a worker in the middle of a job.
import { expect, it } from "vitest";
import { claimJob, heartbeat, readRun, readTasks, report } from "./api.ts";
import { inArena } from "./arena.ts";
import { type Claim, type Entry, readHistory } from "./history.ts";
import type { Connection } from "./http.ts";
import { chain, independent } from "./shapes.ts";
import { until } from "./until.ts";

const CLAIM_MS_MAX = 10_000;

const claimOne = (connection: Connection, ttlSecs: number): Promise<Claim> =>
  until("a claim", CLAIM_MS_MAX, () => claimJob(connection, { workerId: "hand", ttlSecs, waitSecs: 1 }));

it("[G39] every completion with the response 200 is kept after kill -9 of the server right after the response", async () => {
  await inArena(async ({ client, server }) => {
    const length = 12;
    const runId = await client.start(await client.create("chain", chain(length)));
    for (let link = 0; link < length; link++) {
      const { step, leaseId } = await claimOne(client.connection, 60);
      expect(step).toBe(`link-${link}`);
      expect(await report(client.connection, leaseId, "complete", `output of ${step}`)).toBe(200);
      await server.kill();
      await server.start();
      const task = (await readTasks(client.connection, runId)).find((one) => one.step === step);
      expect(task).toMatchObject({ completed: true, token: `output of ${step}` });
    }
    expect(await readRun(client.connection, runId)).toMatchObject({ state: "succeeded" });
  });
});

it("[G28] after kill -9 of the server, valid leases can still be renewed, and their completions are accepted", async () => {
  await inArena(async ({ client, server }) => {
    const runId = await client.start(await client.create("independent", independent(3)));
    const claims = [await claimOne(client.connection, 30), await claimOne(client.connection, 30), await claimOne(client.connection, 30)];
    await server.kill();
    await server.start();
    for (const { leaseId } of claims) expect((await heartbeat(client.connection, leaseId)).status).toBe(200);
    for (const { leaseId } of claims) expect(await report(client.connection, leaseId, "complete", leaseId)).toBe(200);
    expect(await readRun(client.connection, runId)).toMatchObject({ state: "succeeded" });
  });
});

it("[G29] a job whose worker is killed -9 runs again when its lease is over, and not before", async () => {
  await inArena(async (arena) => {
    const habits = { slots: 1, ttlSecs: 1, waitSecs: 1, failRate: 0, dozeRate: 0, seed: 1 };
    const runId = await arena.client.start(await arena.client.create("one", independent(1)));
    const claimed = (worker: string): Entry<"claim-got"> | undefined =>
      readHistory(arena.directory).find((entry) => entry.kind === "claim-got" && entry.where.startsWith(worker)) as
        | Entry<"claim-got">
        | undefined;

    const doomed = arena.addWorker({ ...habits, workMs: [600_000, 600_000] });
    await doomed.start();
    const first = await until("the first claim", CLAIM_MS_MAX, () => claimed("worker-0"));
    await doomed.kill();
    await arena.addWorker({ ...habits, workMs: [0, 0] }).start();
    const second = await until("the second claim", CLAIM_MS_MAX, () => claimed("worker-1"));

    expect(second).toMatchObject({ runId, step: first.step, attempt: first.attempt + 1 });
    await arena.client.untilEnded([runId], CLAIM_MS_MAX);
    const { final } = await arena.judge([runId]);
    expect(final.runs).toMatchObject([{ state: "succeeded" }]);
  });
});
