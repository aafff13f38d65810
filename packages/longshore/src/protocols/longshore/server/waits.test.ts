import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { eventually, job } from "../../../../test/support/workflow-graph.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";

/** So short that no other timer is due within it: when one is, a request waits. The clock moves only when a test moves it. */
const waitMs = 3;

describe("a request with waitMs", () => {
  it("for a run is answered at its end", async () => {
    const { api, create, take, complete } = await startAdminServer();
    const { id } = (await api("POST", "/runs", { workflow: await create(job("a")) })).body;
    const waiting = api("GET", `/runs/${id}?waitMs=${waitMs}`);
    await complete((await take()).lease.lease_id);
    expect((await waiting).body).toMatchObject({ id, state: "succeeded" });
    expect((await api("GET", `/runs/${id}?waitMs=${waitMs}`)).body.state).toBe("succeeded");
  });

  it("for a run is answered with its current state when the time is over", async () => {
    const { api, create, clock, server } = await startAdminServer();
    const { id } = (await api("POST", "/runs", { workflow: await create(job("a")) })).body;
    const waiting = api("GET", `/runs/${id}?waitMs=${waitMs}`);
    await clock.armed(waitMs);
    await clock.advance(waitMs);
    expect(await waiting).toMatchObject({ status: 200, body: { state: "running" } });
    const atTheEnd = api("GET", `/runs/${id}?waitMs=${waitMs}`);
    await clock.armed(waitMs);
    await Promise.all([server.close(), expect(atTheEnd).resolves.toMatchObject({ status: 200, body: { state: "running" } })]);
  });

  it("for a run or a task that does not exist is 404, and a longer wait than the limit 400", async () => {
    const { api } = await startAdminServer();
    expect((await api("GET", "/runs/nope?waitMs=1000")).status).toBe(404);
    expect((await api("GET", "/tasks/nope?waitMs=1000")).status).toBe(404);
    expect((await api("GET", "/runs/nope?waitMs=30001")).body.error).toMatchObject({ field: "query.waitMs" });
  });
});

describe("a task without a workflow", () => {
  const id = "01a1e418-82cf-79a6-924a-000000000001";

  it("is queued, taken, and answered to who waits for it", async () => {
    const { api, server, clock } = await startAdminServer();
    const queued = await api("POST", "/tasks", { task: "double", input: { n: 2 }, id, priority: -3, labels: ["b", "a"] });
    expect(queued.status).toBe(201);
    expect(queued.body).toMatchObject({ runId: null, step: "double", state: "queued", priority: -3, labels: ["a", "b"] });
    expect(queued.headers.location).toBe(`/api/longshore/v1/tasks/${queued.body.id}`);
    const waiting = api("GET", `/tasks/${queued.body.id}?waitMs=${waitMs}`);
    const double = task("double", ({ n }: { n: number }) => 2 * n, { labels: ["a", "b"] });
    await using _worker = await work({ tasks: [double], on: server, clock, logger: false });
    expect((await waiting).body).toMatchObject({ state: "done", output: 4 });
  });

  it("with an id that was queued before is the first one, and another task under its id is 409", async () => {
    const { api } = await startAdminServer();
    const first = await api("POST", "/tasks", { task: "t", input: { a: 1, b: 2 }, id });
    const again = await api("POST", "/tasks", { task: "t", input: { b: 2, a: 1 }, id });
    expect([first.status, again.status]).toEqual([201, 200]);
    expect(again.body).toEqual(first.body);
    const other = await api("POST", "/tasks", { task: "t", input: 3, id });
    expect(other).toMatchObject({ status: 409, body: { error: { code: "LONGSHORE_CONFLICT", field: "id" } } });
    expect((await api("GET", "/tasks")).body.items).toHaveLength(1);
  });

  it("waits for its delay, and is tried again as requested", async () => {
    const { api, clock, server } = await startAdminServer();
    const retry = { limit: 1, backoff: { kind: "fixed", delayMs: 1_000 } };
    const { body } = await api("POST", "/tasks", { task: "flaky", delayMs: 5_000, retry });
    expect(body).toMatchObject({ dueAt: clock.now() + 5_000, input: null });
    const calls: number[] = [];
    const flaky = task("flaky", () => {
      calls.push(clock.now());
      if (calls.length === 1) throw new Error("not yet");
      return "now";
    });
    await using _worker = await work({ tasks: [flaky], on: server, clock, logger: false });
    await clock.advance(5_000);
    await eventually(async () => (await api("GET", `/tasks/${body.id}`)).body.attempt === 2);
    await clock.advance(1_000);
    expect((await api("GET", `/tasks/${body.id}?waitMs=${waitMs}`)).body).toMatchObject({ state: "done", output: "now", attempt: 2 });
  });

  it.each([
    ["no task", {}, "task"],
    ["a name that no worker can have", { task: "$command" }, "task"],
    ["an id that is not a UUID", { task: "t", id: "mine" }, "id"],
    ["a delay below zero", { task: "t", delayMs: -1 }, "delayMs"],
    ["an unknown backoff", { task: "t", retry: { limit: 1, backoff: { kind: "none" } } }, "retry.backoff.kind"],
  ])("with %s is 400 and names it", async (_, request, field) => {
    const { api } = await startAdminServer();
    expect(await api("POST", "/tasks", request)).toMatchObject({ status: 400, body: { error: { code: "LONGSHORE_BAD_INPUT", field } } });
  });
});
