// Two requests for the same task at the same time, many times: in any order, exactly one of them succeeds.
import { expect, it } from "vitest";
import { cancelRun, claimJob, heartbeat, readRun, readTasks, report } from "./api.ts";
import { inArena } from "./arena.ts";
import type { Claim } from "./history.ts";
import { connect } from "./http.ts";
import { independent } from "./shapes.ts";
import { until } from "./until.ts";

const ROUNDS = 60;
const JOBS = 40;
const SOCKETS = 2 * JOBS;
const WAIT_MS_MAX = 15_000;
/**
 * The time between two completions. Together the completions cover the time from well before the end of a lease to well after it, also on a
 * busy machine.
 */
const STEP_MS = 8;

it.concurrent("after a cancel that races with a claim there is nothing to claim, and a worker that got the job is notified", async () => {
  await inArena(async ({ client, url }) => {
    const workflow = await client.create("race", independent(1));
    const worker = connect(url, 2);
    const met = { before: 0, after: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      const runId = await client.start(workflow);
      const [claim, cancelled] = await Promise.all([
        claimJob(worker, { workerId: "w", ttlSecs: 60, waitSecs: 0 }),
        cancelRun(client.connection, runId),
      ]);
      expect(cancelled.state).toBe("cancelled");
      expect(await claimJob(worker, { workerId: "w", ttlSecs: 60, waitSecs: 0 })).toBeNull();
      met[claim ? "before" : "after"]++;
      if (claim) {
        expect(claim.runId).toBe(runId);
        expect(await heartbeat(worker, claim.leaseId)).toMatchObject({ status: 200, cancelled: true });
        expect(await report(worker, claim.leaseId, "complete", "late")).toBe(200);
      }
      expect(await readRun(client.connection, runId)).toMatchObject({ state: "cancelled" });
      expect(await readTasks(client.connection, runId)).toMatchObject([{ state: "cancelled" }]);
    }
    process.stdout.write(`faults: the claim came first in ${met.before} of ${ROUNDS} races with a cancel\n`);
    worker.close();
  });
});

it.concurrent("a completion at the very end of its lease either counts or leaves the job to the next holder", async () => {
  await inArena(async ({ client, url }) => {
    const runId = await client.start(await client.create("race", independent(JOBS)));
    const worker = connect(url, SOCKETS);
    const others = connect(url, SOCKETS);
    const claimOne = (ttlSecs: number): Promise<Claim> =>
      until("a claim", WAIT_MS_MAX, () => claimJob(worker, { workerId: "w", ttlSecs, waitSecs: 1 }));
    const firsts = await Promise.all(Array.from({ length: JOBS }, () => claimOne(1)));
    // The other worker waits with a claim all the time. So a lost job is handed over in the commit that ends its lease.
    const seconds = new Map<string, Claim>();
    let open = true;
    const taking = Array.from({ length: JOBS }, async () => {
      while (open) {
        const claim = await claimJob(others, { workerId: "other", ttlSecs: 60, waitSecs: 1 });
        if (claim) seconds.set(claim.step, claim);
      }
    });
    const statuses = await Promise.all(
      firsts.map(async (claim, index) => {
        await until("the end of a lease", WAIT_MS_MAX, () => Date.now() >= claim.expiresAt + (index - JOBS / 2) * STEP_MS);
        return report(worker, claim.leaseId, "complete", "first");
      }),
    );
    await until("every job to be done or handed over", WAIT_MS_MAX, async () =>
      (await readTasks(client.connection, runId)).every((task) => task.completed || seconds.has(task.step)),
    );
    open = false;
    await Promise.all(taking);
    for (const [index, { step }] of firsts.entries()) {
      const second = seconds.get(step);
      expect({ step, refused: statuses[index] === 409 }).toEqual({ step, refused: second !== undefined });
      if (second) expect(await report(worker, second.leaseId, "complete", "second")).toBe(200);
    }
    for (const { step, token, completed } of await readTasks(client.connection, runId)) {
      expect({ step, completed, token }).toEqual({ step, completed: true, token: seconds.has(step) ? "second" : "first" });
    }
    process.stdout.write(`faults: ${seconds.size} of ${JOBS} completions came too late by a hair\n`);
    worker.close();
    others.close();
  });
});
