// Cancelling: a cancelled workflow stays cancelled.

import { describe, expect, it } from "vitest";
import { eventually, job, startGraphServer } from "../../support/workflow-graph.ts";

describe("a cancel", () => {
  it("[W-CAN-01, G41] removes waiting jobs from the queue and notifies the worker of a running one", async () => {
    const { start, take, claim, post, cancelled, states } = await startGraphServer();
    const id = await start(job("a"), job("pending"), job("b", { depends_on: ["a"] }));
    const { job: given } = await take();
    expect(await cancelled(given.workflow_id, "a")).toBe(false);
    await post(`/api/workflows/${id}/cancel`);
    expect(await claim()).toBeNull();
    expect(await cancelled(given.workflow_id, "a")).toBe(true);
    expect(await cancelled(given.workflow_id, "pending")).toBe(true);
    expect(await states(id)).toEqual({ a: "cancelled", pending: "cancelled", b: "cancelled" });
  });

  it("[G42] is not undone by a worker that reports its abort as a failure to be retried", async () => {
    const { start, take, claim, post, fail, job: jobOf } = await startGraphServer();
    const id = await start(job("a", { max_retries: 3 }), job("b", { depends_on: ["a"] }));
    const { lease } = await take();
    await post(`/api/workflows/${id}/cancel`);
    expect(await fail(lease.lease_id, true, "cancelled")).toBe(200);
    expect(await jobOf(id, "a")).toMatchObject({ status: "cancelled", output: null });
    expect((await jobOf(id, "b")).status).toBe("cancelled");
    expect(await claim()).toBeNull();
  });

  it("[G43] is not undone by a completion, which gets 200 once", async () => {
    const { start, take, claim, post, complete, states } = await startGraphServer();
    const id = await start(job("a"), job("b", { depends_on: ["a"] }));
    const { lease } = await take();
    await post(`/api/workflows/${id}/cancel`);
    expect(await complete(lease.lease_id)).toBe(200);
    expect(await complete(lease.lease_id)).toBe(409);
    expect(await states(id)).toEqual({ a: "cancelled", b: "cancelled" });
    expect(await claim()).toBeNull();
  });

  it("stops the heartbeats of a worker that does not poll for it, after its lease has ended", async () => {
    const { start, take, post, heartbeat, clock } = await startGraphServer();
    const id = await start(job("a"));
    const { lease } = await take({ ttl: 30 });
    await post(`/api/workflows/${id}/cancel`);
    await clock.advance(20_000);
    expect(await heartbeat(lease.lease_id)).toBe(200);
    await clock.advance(10_000);
    await eventually(async () => (await heartbeat(lease.lease_id)) === 409);
  });

  it("[G44] does not affect the next run, which succeeds", async () => {
    const { start, take, post, fail, complete, cancelled, states } = await startGraphServer();
    const id = await start(job("a"));
    const first = await take();
    await post(`/api/workflows/${id}/cancel`);
    await fail(first.lease.lease_id, false);
    await post(`/api/workflows/${id}/run`);
    const second = await take();
    expect(await cancelled(second.job.workflow_id, "a")).toBe(false);
    expect(await cancelled(id, "a")).toBe(false);
    await complete(second.lease.lease_id);
    expect(await states(id)).toEqual({ a: "success" });
  });

  it("[G44] still reaches a worker of the cancelled run when the next run has begun", async () => {
    const { start, take, post, complete, cancelled, states, push } = await startGraphServer();
    const id = await start(job("a"));
    const first = await take({ worker: "slow" });
    await post(`/api/workflows/${id}/cancel`);
    await post(`/api/workflows/${id}/run`);
    const second = await take({ worker: "quick" });
    expect(second.job.workflow_id).not.toBe(first.job.workflow_id);
    expect(await cancelled(first.job.workflow_id, "a")).toBe(true);
    expect(await cancelled(second.job.workflow_id, "a")).toBe(false);
    expect(await push(second.lease.lease_id, { workflow_id: second.job.workflow_id, job_id: "a", data: "x" })).toBe(200);
    await complete(second.lease.lease_id);
    expect(await states(id)).toEqual({ a: "success" });
    expect(await states(second.job.workflow_id)).toEqual({ a: "success" });
  });

  it("[G45] of a workflow that does not exist is 404, and of one that never ran or has ended 202", async () => {
    const { create, post, take, complete, states } = await startGraphServer();
    expect(await post("/api/workflows/nothing/cancel")).toMatchObject({ status: 404, text: "" });
    const id = await create(job("a"));
    expect((await post(`/api/workflows/${id}/cancel`)).status).toBe(202);
    await post(`/api/workflows/${id}/run`);
    await complete((await take()).lease.lease_id);
    expect((await post(`/api/workflows/${id}/cancel`)).status).toBe(202);
    expect(await states(id)).toEqual({ a: "success" });
  });
});
