import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { workflow } from "../../../workflow.ts";

describe("workers", () => {
  it("are listed with what they hold and what they claim", async () => {
    const { api, start, take, post, clock } = await startAdminServer();
    await post("/api/workers/register", { worker_id: "w1", labels: ["linux", "handler:greet"] });
    await start(job("a"));
    await take({ worker: "w1", labels: ["linux", "handler:greet"] });
    const { items } = (await api("GET", "/workers")).body;
    expect(items).toMatchObject([
      {
        id: "w1",
        protocol: "workflow-graph",
        status: "busy",
        labels: ["linux", "handler:greet"],
        lanes: ["$command", "greet"],
        does: ["greet"],
        seenAt: clock.now(),
        tasks: [{ step: "a" }],
      },
    ]);
  });

  it("that poll one kind of task after the other are listed with all of them", async () => {
    const { api, server } = await startAdminServer();
    for (const type of ["pack", "ship"]) await fetch(`${server.url}/api/tasks/poll/batch/${type}?workerid=w1&timeout=0`);
    expect((await api("GET", "/workers")).body.items).toMatchObject([{ id: "w1", protocol: "conductor", does: ["ship", "pack"] }]);
  });

  it("of durable functions are listed with the workflows that they are for", async () => {
    const { api, server } = await startAdminServer();
    const order = workflow("order", async () => null);
    const worker = await work({ tasks: [task("greet", async () => null)], workflows: [order], on: server, slots: 1 });
    await eventually(async () => (await api("GET", "/workers")).body.items.length === 1);
    expect((await api("GET", "/workers")).body.items).toMatchObject([{ does: ["greet", "workflow order"] }]);
    await worker.stop();
  });

  it("in the server's own process are listed too", async () => {
    const { api, server } = await startAdminServer();
    const worker = await work({ tasks: [task("greet", async () => null)], on: server, slots: 1 });
    await eventually(async () => (await api("GET", "/workers")).body.items.length === 1);
    expect((await api("GET", "/workers")).body.items).toMatchObject([
      { protocol: "local", status: "idle", lanes: ["greet"], does: ["greet"] },
    ]);
    await worker.stop();
  });
});

describe("queues", () => {
  it("show how much is ready, since when, and why it waits", async () => {
    const { api, start, clock, post } = await startAdminServer();
    const startedAt = clock.now();
    await start(job("a", { required_labels: ["gpu"] }), job("b", { required_labels: ["gpu"] }));
    await clock.advance(5_000);
    await post("/api/workers/register", { worker_id: "w1", labels: ["linux"] });
    const { items } = (await api("GET", "/queues")).body;
    expect(items).toMatchObject([
      {
        lane: "$command",
        labels: ["gpu"],
        ready: 2,
        sent: 0,
        oldestAt: startedAt,
        pollers: 0,
        workers: 0,
        waiting: { reason: "no-worker", missing: ["gpu"] },
      },
    ]);
  });

  it("do not count what was cancelled", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await api("POST", `/runs/${id}/cancel`);
    // Nothing else is in its lane, and no worker has used it.
    expect((await api("GET", "/queues")).body.items).toEqual([]);
  });

  it("count claims that wait", async () => {
    const { api, start, take, complete, claim, server } = await startAdminServer();
    await start(job("a"));
    await complete((await take()).lease.lease_id);
    const waiting = claim({ wait: 30 });
    await eventually(async () => (await api("GET", "/queues")).body.items[0].pollers === 1);
    await server.close();
    expect(await waiting).toBeNull();
  });
});
