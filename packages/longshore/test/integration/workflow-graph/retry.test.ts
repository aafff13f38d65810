// Failures and what follows.

import { describe, expect, it } from "vitest";
import { eventually, job, startGraphServer } from "../../support/workflow-graph.ts";

describe("retries", () => {
  it("[W-FAIL-02, G30] run the job again as often as its retries allow", async () => {
    const { start, take, claim, fail, job: jobOf } = await startGraphServer();
    const id = await start(job("a", { max_retries: 2 }), job("b", { depends_on: ["a"] }));
    const attempts = [];
    for (let time = 0; time < 3; time++) {
      const { job: given, lease } = await take();
      attempts.push(given.attempt);
      expect(await fail(lease.lease_id, true, `failure ${time}`)).toBe(200);
    }
    expect(attempts).toEqual([0, 1, 2]);
    expect(await claim()).toBeNull();
    expect(await jobOf(id, "a")).toMatchObject({ status: "failure", output: "failure 2" });
    expect((await jobOf(id, "b")).status).toBe("skipped");
  });

  it("[G31] do not follow a failure that the worker reports as final", async () => {
    const { start, take, claim, fail, job: jobOf } = await startGraphServer();
    const id = await start(job("a", { max_retries: 3 }));
    await fail((await take()).lease.lease_id, false);
    expect(await claim()).toBeNull();
    expect((await jobOf(id, "a")).status).toBe("failure");
  });

  it("[G32] wait five seconds with a fixed backoff of five", async () => {
    const { start, take, claim, fail, clock } = await startGraphServer();
    await start(job("a", { max_retries: 1, backoff: { Fixed: { delay_secs: 5 } } }));
    await fail((await take()).lease.lease_id, true);
    await clock.advance(4_999);
    expect(await claim()).toBeNull();
    await clock.advance(1);
    const { job: given } = await take();
    expect(given.retry_policy.backoff).toEqual({ Fixed: { delay_secs: 5 } });
    expect(given.delayed_until_ms).toBe(clock.now());
    expect(given.delayed_until_ms - given.enqueued_at_ms).toBe(5_000);
  });

  it("[G32] wait for the base, twice the base, four times the base and so on up to the limit with an exponential backoff", async () => {
    const { start, take, fail, clock } = await startGraphServer();
    await start(job("a", { max_retries: 7, backoff: { Exponential: { base_secs: 2, max_secs: 60 } } }));
    const waits: number[] = [];
    let taken = await take();
    for (let retry = 0; retry < 7; retry++) {
      await fail(taken.lease.lease_id, true);
      await clock.advance(60_000);
      taken = await take();
      waits.push((taken.job.delayed_until_ms - taken.job.enqueued_at_ms) / 1_000);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 60, 60]);
  });

  it("[G33] show the real attempt in the status of a workflow", async () => {
    const { start, take, fail, job: jobOf } = await startGraphServer();
    const id = await start(job("a", { max_retries: 2 }));
    await fail((await take()).lease.lease_id, true);
    expect(await jobOf(id, "a")).toMatchObject({ status: "queued", attempt: 1, started_at: null });
    await take();
    expect(await jobOf(id, "a")).toMatchObject({ status: "running", attempt: 1 });
  });
});

describe("a timeout", () => {
  it("[G64] ends an attempt that takes too long, with or without heartbeats", async () => {
    const { start, take, heartbeat, complete, job: jobOf, clock } = await startGraphServer();
    const id = await start(job("a", { timeout_secs: 45 }));
    const { job: given, lease } = await take({ ttl: 30 });
    expect(given.timeout_secs).toBe(45);
    await clock.advance(25_000);
    expect(await heartbeat(lease.lease_id)).toBe(200);
    await clock.advance(20_000);
    await eventually(async () => (await jobOf(id, "a")).status === "failure");
    expect((await jobOf(id, "a")).output).toContain("timed out");
    expect(await complete(lease.lease_id)).toBe(409);
  });
});
