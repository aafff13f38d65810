import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";

describe("a queue", () => {
  it("is paused and resumed, and its tasks show why they wait", async () => {
    const { api, create, claim, clock } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const paused = { reason: "a broken bank", by: null, at: clock.now() };
    expect((await api("POST", "/queues/pause", { lane: "$command", reason: paused.reason })).body).toEqual({
      lane: "$command",
      labels: [],
      paused,
    });
    expect(await claim()).toBeNull();
    expect((await api("GET", "/queues")).body.items).toMatchObject([{ lane: "$command", ready: 1, paused }]);
    expect((await api("GET", `/tasks/${id}.0`)).body.waiting).toMatchObject({ reason: "paused", text: expect.stringContaining("bank") });
    expect((await api("POST", "/queues/resume", { lane: "$command" })).body.paused).toBeNull();
    expect((await claim())?.job.job_id).toBe("a");
    expect((await api("GET", "/queues")).body.items.filter((one: { paused: unknown }) => one.paused !== null)).toEqual([]);
  });

  it("that is paused is listed without tasks", async () => {
    const { api } = await startAdminServer();
    await api("POST", "/queues/pause", { lane: "later", labels: ["gpu"] });
    expect((await api("GET", "/queues")).body.items).toMatchObject([{ lane: "later", labels: ["gpu"], ready: 0 }]);
  });
});

describe("a cordoned worker", () => {
  it("gets no more tasks, by a poll, a long poll or with a report, and keeps what it holds", async () => {
    const { api, create, claim, take, complete, workers } = await startAdminServer();
    const workflow = await create(job("a"), job("b"));
    await api("POST", "/runs", { workflow });
    const { lease } = await take({ worker: "w1" });
    expect((await api("POST", "/workers/w1/cordon", { reason: "old" })).body).toMatchObject({ id: "w1", cordoned: { reason: "old" } });
    expect(await claim({ worker: "w1" })).toBeNull();
    expect((await api("GET", "/workers")).body.items).toMatchObject([{ id: "w1", cordoned: { reason: "old" } }]);
    expect((await api("GET", "/queues")).body.items[0].waiting).toMatchObject({
      reason: "no-worker",
      text: expect.stringContaining("cordoned"),
    });
    expect(await complete(lease.lease_id)).toBe(200);
    expect(await workers()).toHaveLength(1);
    const waiting = claim({ worker: "w1", wait: 30 });
    await eventually(async () => (await api("POST", "/workers/w1/uncordon")).status === 200);
    // Its wait ends, and its next claim gets a task.
    expect(await waiting).toBeNull();
    expect(await claim({ worker: "w1" })).not.toBeNull();
  });

  it("that waits for a task stops waiting, and others get it", async () => {
    const { api, create, claim, take, complete } = await startAdminServer();
    const workflow = await create(job("a"));
    await api("POST", "/runs", { workflow });
    await complete((await take({ worker: "w1" })).lease.lease_id);
    const waiting = claim({ worker: "w1", wait: 30 });
    await eventually(async () => (await api("GET", "/queues")).body.items[0].pollers === 1);
    await api("POST", "/workers/w1/cordon", {});
    expect(await waiting).toBeNull();
    await api("POST", "/runs", { workflow });
    expect((await claim({ worker: "w2" }))?.job.job_id).toBe("a");
  });
});
