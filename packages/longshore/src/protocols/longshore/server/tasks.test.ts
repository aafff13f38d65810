import { describe, expect, it } from "vitest";
import { type AdminServer, startAdminServer } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";

async function startRun({ api, create }: AdminServer, ...jobs: ReturnType<typeof job>[]): Promise<string> {
  const workflow = await create(...jobs);
  return (await api("POST", "/runs", { workflow })).body.id;
}

describe("tasks", () => {
  it("show their state, from queued to done", async () => {
    const server = await startAdminServer();
    const { api, take, complete, clock } = server;
    const id = await startRun(server, job("a", { required_labels: ["linux"] }));
    const { items } = (await api("GET", `/runs/${id}/tasks`)).body;
    expect(items).toMatchObject([
      {
        runId: id,
        step: "a",
        state: "queued",
        attempt: 1,
        grant: 0,
        failures: 0,
        lost: 0,
        holder: null,
        lane: "$command",
        labels: ["linux"],
      },
    ]);
    expect(items[0].waiting).toMatchObject({ reason: "no-worker", missing: ["linux"] });
    const { lease } = await take({ worker: "w7", labels: ["linux"] });
    const held = (await api("GET", `/tasks/${items[0].id}`)).body;
    expect(held).toMatchObject({ state: "held", holder: "w7", grant: 1, startedAt: clock.now() });
    expect(held).not.toHaveProperty("waiting");
    await complete(lease.lease_id, { v: "1" });
    expect((await api("GET", `/tasks/${items[0].id}`)).body).toMatchObject({ state: "done", output: { v: "1" }, endedAt: clock.now() });
  });

  it("are listed over all runs by state and lane", async () => {
    const server = await startAdminServer();
    const { api, take } = server;
    const first = await startRun(server, job("a"));
    const second = await startRun(server, job("a"));
    await take();
    const runsOf = async (query: string) => (await api("GET", `/tasks?${query}`)).body.items.map((task: { runId: string }) => task.runId);
    expect(await runsOf("state=queued")).toEqual([second]);
    expect(await runsOf("state=held&lane=$command")).toEqual([first]);
    expect(await runsOf("lane=other")).toEqual([]);
    expect(await runsOf("limit=1")).toEqual([second]);
  });

  it("keep a list of their attempts", async () => {
    const server = await startAdminServer();
    const { api, take, fail, clock } = server;
    const id = await startRun(server, job("a", { max_retries: 1 }));
    await fail((await take({ worker: "w1" })).lease.lease_id, true, "first");
    await clock.advance(1_000);
    await take({ worker: "w2" });
    const { items } = (await api("GET", `/tasks/${id}.0/attempts`)).body;
    expect(items).toMatchObject([
      { attempt: 1, holder: "w1", error: "first", closedBy: "fail", endedAt: expect.any(Number) },
      { attempt: 2, holder: "w2", error: null, closedBy: null, endedAt: null },
    ]);
  });

  it("can be cancelled alone, which fails the run", async () => {
    const server = await startAdminServer();
    const { api } = server;
    const id = await startRun(server, job("a"), job("b"));
    const { status, body } = await api("POST", `/tasks/${id}.0/cancel`);
    expect([status, body.state]).toEqual([202, "cancelled"]);
    expect((await api("POST", `/tasks/${id}.0/cancel`)).body).toEqual(body);
    expect((await api("GET", `/runs/${id}`)).body).toMatchObject({ state: "running", failed: 1, left: 1 });
  });

  it.each([
    ["GET", ""],
    ["GET", "/attempts"],
    ["POST", "/cancel"],
  ])("that do not exist are 404 for %s /tasks/:id%s", async (method, rest) => {
    const { api } = await startAdminServer();
    expect((await api(method, `/tasks/nope${rest}`)).status).toBe(404);
  });

  it("of a run are listed in pages, in the order of its steps", async () => {
    const server = await startAdminServer();
    const { api } = server;
    const id = await startRun(server, ...Array.from({ length: 12 }, (_, at) => job(`s${at}`)));
    const first = (await api("GET", `/runs/${id}/tasks?limit=8`)).body;
    const second = (await api("GET", `/runs/${id}/tasks?limit=8&after=${first.next}`)).body;
    const steps = [...first.items, ...second.items].map((task: { step: string }) => task.step);
    expect(steps).toEqual(Array.from({ length: 12 }, (_, at) => `s${at}`));
    expect(second.next).toBeNull();
  });
});

describe("steps", () => {
  it("are all listed, also those that are not due, with their last log line on request", async () => {
    const server = await startAdminServer();
    const { api, take, push } = server;
    const id = await startRun(server, job("a"), job("b", { depends_on: ["a"] }));
    const { lease } = await take();
    await push(lease.lease_id, { workflow_id: lease.workflow_id, job_id: lease.job_id, data: "one\ntwo\n" });
    expect((await api("GET", `/runs/${id}/steps?lines=true`)).body.items).toMatchObject([
      { id: "a", state: "held", taskId: `${id}.0`, attempt: 1, holder: "w1", lastLine: "two" },
      { id: "b", state: "waiting", taskId: null, attempt: 0, after: ["a"], lastLine: null },
    ]);
    expect((await api("GET", `/runs/${id}/steps`)).body.items[0]).not.toHaveProperty("lastLine");
  });

  it("that will be started again wait again", async () => {
    const server = await startAdminServer();
    const { api, take, fail } = server;
    const id = await startRun(server, job("a"), job("b", { depends_on: ["a"] }));
    await fail((await take()).lease.lease_id);
    const statesOf = async () => (await api("GET", `/runs/${id}/steps`)).body.items.map((step: { state: string }) => step.state);
    expect(await statesOf()).toEqual(["failed", "skipped"]);
    await api("POST", `/runs/${id}/retry`);
    expect(await statesOf()).toEqual(["queued", "waiting"]);
    expect((await api("GET", `/runs/${id}/tasks`)).body.items).toHaveLength(1);
  });
});
