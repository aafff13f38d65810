import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../../../test/support/admin.ts";
import { job } from "../../../../test/support/workflow-graph.ts";
import { uuidOf } from "../../../core/ids.ts";

describe("starting a run", () => {
  it("answers 201 with the run and where it is", async () => {
    const { api, create, clock } = await startAdminServer();
    const workflow = await create(job("a"));
    const { status, body, headers } = await api("POST", "/runs", { workflow, input: { x: [1, null] } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ workflow, state: "running", input: { x: [1, null] }, output: null, left: 1, createdAt: clock.now() });
    expect(headers.location).toBe(`/api/longshore/v1/runs/${body.id}`);
    expect((await api("GET", `/runs/${body.id}`)).body).toEqual({ ...body, waiting: expect.objectContaining({ step: "a" }) });
  });

  it("gives it an id that is found in its other spelling too, as a UUID", async () => {
    const { api, create } = await startAdminServer();
    const { body } = await api("POST", "/runs", { workflow: await create(job("a")) });
    const uuid = uuidOf(body.id);
    for (const path of ["", "/tasks", "/steps", "/logs"]) {
      expect((await api("GET", `/runs/${uuid}${path}`)).body, path).toEqual((await api("GET", `/runs/${body.id}${path}`)).body);
    }
    expect((await api("POST", `/runs/${uuid}/cancel`)).body).toMatchObject({ id: body.id, state: "cancelled" });
    expect((await api("GET", "/runs/01a1e418-82cf-79a6-924a-000000000000")).status).toBe(404);
  });

  it("with one key twice starts once", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const first = await api("POST", "/runs", { workflow, key: "order-7", input: { a: 1, b: 2 } });
    const second = await api("POST", "/runs", { workflow, key: "order-7", input: { b: 2, a: 1 } });
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body).toEqual(first.body);
    expect((await api("POST", "/runs", { workflow, key: "order-8" })).status).toBe(201);
  });

  it("with a key that a run with another input has is 409 and names the run", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const first = await api("POST", "/runs", { workflow, key: "order-7", input: 1 });
    const { status, body } = await api("POST", "/runs", { workflow, key: "order-7", input: 2 });
    expect(status).toBe(409);
    expect(body.error).toMatchObject({ code: "LONGSHORE_CONFLICT", field: "key", run: first.body.id });
    expect(body.error.message).toContain(`"order-7" belongs to run ${first.body.id}`);
    expect((await api("GET", "/runs")).body.items).toHaveLength(1);
  });

  it("with a delay begins later, and shows when", async () => {
    const { api, create, clock, take } = await startAdminServer();
    const workflow = await create(job("a"));
    const { body } = await api("POST", "/runs", { workflow, delayMs: 60_000, priority: 5 });
    const startAt = clock.now() + 60_000;
    expect(body).toMatchObject({ state: "running", startAt, priority: 5, createdAt: clock.now() });
    expect((await api("GET", `/runs/${body.id}/tasks`)).body.items).toEqual([]);
    await clock.advance(60_000);
    expect((await api("GET", `/runs/${body.id}`)).body).toMatchObject({ state: "running", startAt: null, left: 1 });
    expect((await api("GET", `/runs/${body.id}/tasks`)).body.items).toMatchObject([{ step: "a", priority: 5, postedAt: startAt }]);
    expect((await take()).lease).toBeDefined();
  });

  it("of an unknown workflow is 404 and names the field", async () => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/runs", { workflow: "nope" });
    expect(status).toBe(404);
    expect(body.error).toMatchObject({ code: "LONGSHORE_NOT_FOUND", field: "workflow", expected: "the name of a definition" });
  });

  it.each([
    ["no workflow", {}, "workflow"],
    ["a workflow of another type", { workflow: 7 }, "workflow"],
    ["an empty key", { workflow: "w", key: "" }, "key"],
    ["a key that is too long", { workflow: "w", key: "k".repeat(257) }, "key"],
    ["a delay below zero", { workflow: "w", delayMs: -1 }, "delayMs"],
    ["a delay of more than a year", { workflow: "w", delayMs: 40_000_000_000 }, "delayMs"],
    ["a priority that is not an integer", { workflow: "w", priority: 0.5 }, "priority"],
    ["a control character in the name", { workflow: "a\u0000b" }, "workflow"],
    ["a field that does not exist", { workflow: "w", inputs: {} }, "inputs"],
  ])("with %s is 400 and names it", async (_, request, field) => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/runs", request);
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "LONGSHORE_BAD_INPUT", field, expected: expect.any(String) });
  });

  it("with a field that does not exist gets the list of fields", async () => {
    const { api } = await startAdminServer();
    const { body } = await api("POST", "/runs", { workflow: "w", inputs: {} });
    expect(body.error).toMatchObject({ field: "inputs", expected: "one of workflow, input, key, delayMs, priority" });
    const { body: query } = await api("GET", "/runs/x/tasks?colour=red");
    expect(query.error).toMatchObject({ field: "query.colour", expected: "one of limit, after" });
  });

  it("with a body that is not JSON reports line and column", async () => {
    const { api } = await startAdminServer();
    const { status, body } = await api("POST", "/runs", '{"workflow":\n  nope}');
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: "LONGSHORE_BAD_INPUT", line: 2, column: expect.any(Number) });
  });

  it("with a body that is nested too deeply or too large is refused with the limit named", async () => {
    const { api } = await startAdminServer();
    const deep = await api("POST", "/runs", `{"workflow":"w","input":${"[".repeat(200)}${"]".repeat(200)}}`);
    expect(deep.status).toBe(400);
    expect(deep.body.error.expected).toBe("at most 100 levels");
    const large = await api("POST", "/runs", JSON.stringify({ workflow: "w", input: "x".repeat(2_100_000) }));
    expect(large.status).toBe(413);
    expect(large.body.error).toMatchObject({ code: "LONGSHORE_LIMIT", field: "body", expected: "at most 2097152 bytes" });
  });
});

describe("listing runs", () => {
  it("gives the newest first, in pages", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const ids: string[] = [];
    for (let at = 0; at < 5; at++) ids.push((await api("POST", "/runs", { workflow })).body.id);
    const first = await api("GET", "/runs?limit=2");
    const second = await api("GET", `/runs?limit=2&before=${first.body.next}`);
    const third = await api("GET", `/runs?limit=2&before=${second.body.next}`);
    const listed = [first, second, third].flatMap(({ body }) => body.items.map((run: { id: string }) => run.id));
    expect(listed).toEqual(ids.toReversed());
    expect(third.body.next).toBeNull();
  });

  it("keeps to a workflow and a state", async () => {
    const { api, create, take, complete, send } = await startAdminServer();
    const [one, two] = [await create(job("a")), await create(job("a"))];
    const done = (await api("POST", "/runs", { workflow: one })).body.id;
    await complete((await take()).lease.lease_id);
    const open = (await api("POST", "/runs", { workflow: one })).body.id;
    const other = (await api("POST", "/runs", { workflow: two })).body.id;
    const idsOf = async (query: string) => (await api("GET", `/runs?${query}`)).body.items.map((run: { id: string }) => run.id);
    expect(await idsOf(`workflow=${one}`)).toEqual([open, done]);
    expect(await idsOf("state=running")).toEqual([other, open]);
    expect(await idsOf(`workflow=${one}&state=succeeded`)).toEqual([done]);
    // Only Conductor has a way to pause.
    await send("PUT", `/api/workflow/${open}/pause`);
    expect(await idsOf("state=paused")).toEqual([open]);
    expect(await idsOf("state=running")).toEqual([other]);
  });

  it.each(["limit=0", "limit=1001", "limit=x", "limit=1&limit=2", "state=done", "nope=1"])(
    "refuses ?%s and reports what was expected",
    async (query) => {
      const { api } = await startAdminServer();
      const { status, body } = await api("GET", `/runs?${query}`);
      expect(status).toBe(400);
      expect(body.error.field).toMatch(/^query\./);
    },
  );
});

describe("a run that fails", () => {
  it("reads cancelled as soon as the cancel was acknowledged, also while its workers still run", async () => {
    const { api, create, take, heartbeat } = await startAdminServer();
    const workflow = await create(job("a"), job("b", { depends_on: ["a"] }));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const { lease } = await take();
    const cancelled = await api("POST", `/runs/${id}/cancel`);
    expect([cancelled.status, cancelled.body.state]).toEqual([202, "cancelled"]);
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("cancelled");
    const tasks = (await api("GET", `/runs/${id}/tasks`)).body.items;
    expect(tasks).toMatchObject([{ step: "a", state: "cancelling" }]);
    expect(await heartbeat(lease.lease_id)).toBe(200);
    expect((await api("POST", `/runs/${id}/cancel`)).body).toEqual(cancelled.body);
  });

  it("keeps the reason of a cancel as its error, also when a step had failed before", async () => {
    const { api, create, take, fail } = await startAdminServer();
    const workflow = await create(job("a"), job("b"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await fail((await take()).lease.lease_id);
    expect((await api("GET", `/runs/${id}`)).body).toMatchObject({ state: "running", error: expect.stringContaining("step a failed") });
    const cancelled = await api("POST", `/runs/${id}/cancel`, { reason: "wrong input" });
    expect(cancelled.body).toMatchObject({ state: "cancelled", error: "wrong input" });
    // One that has ended stays as it is.
    expect((await api("POST", `/runs/${id}/cancel`, { reason: "another" })).body).toEqual(cancelled.body);
    expect((await api("GET", `/runs/${id}`)).body).toEqual(cancelled.body);
    expect((await api("GET", `/runs/${id}/steps`)).body.items).toMatchObject([{ id: "a", state: "failed" }, { state: "cancelled" }]);
  });

  it("is refused a reason that is not a text, empty, too long or under another name", async () => {
    const { api, create } = await startAdminServer();
    const { id } = (await api("POST", "/runs", { workflow: await create(job("a")) })).body;
    for (const body of [{ reason: 1 }, { reason: "" }, { reason: "x".repeat(1_001) }, { because: "x" }]) {
      const { status, body: problem } = await api("POST", `/runs/${id}/cancel`, body);
      expect([status, problem.error.field]).toEqual([400, Object.keys(body)[0]]);
    }
    expect((await api("GET", `/runs/${id}`)).body.state).toBe("running");
  });

  it("is tried again from what did not succeed", async () => {
    const { api, create, take, complete, fail } = await startAdminServer();
    const workflow = await create(job("a"), job("b", { depends_on: ["a"] }), job("c", { depends_on: ["b"] }));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    await complete((await take()).lease.lease_id, { v: "1" });
    await fail((await take()).lease.lease_id, false, "boom");
    const failed = (await api("GET", `/runs/${id}`)).body;
    expect(failed).toMatchObject({ state: "failed", error: "step b failed: boom" });
    const again = await api("POST", `/runs/${id}/retry`);
    expect([again.status, again.body.state, again.body.retries]).toEqual([202, "running", 1]);
    const next = await take();
    expect([next.job.job_id, next.job.upstream_outputs]).toEqual(["b", { a: { v: "1" } }]);
    await complete(next.lease.lease_id);
    await complete((await take()).lease.lease_id);
    expect((await api("GET", `/runs/${id}`)).body).toMatchObject({ state: "succeeded", error: null, left: 0 });
  });

  it("cannot be tried again while it runs, and not after it has succeeded", async () => {
    const { api, create, take, complete } = await startAdminServer();
    const workflow = await create(job("a"));
    const { id } = (await api("POST", "/runs", { workflow })).body;
    const early = await api("POST", `/runs/${id}/retry`);
    expect([early.status, early.body.error.code]).toEqual([409, "LONGSHORE_CONFLICT"]);
    await complete((await take()).lease.lease_id);
    expect((await api("POST", `/runs/${id}/retry`)).status).toBe(409);
  });

  it("can be run again with the same version and input", async () => {
    const { api, create } = await startAdminServer();
    const workflow = await create(job("a"));
    const first = (await api("POST", "/runs", { workflow, input: { n: 1 } })).body;
    const { status, body } = await api("POST", `/runs/${first.id}/rerun`);
    expect(status).toBe(201);
    expect(body).toMatchObject({ workflow, definitionId: first.definitionId, input: { n: 1 }, state: "running" });
    expect(body.id).not.toBe(first.id);
  });

  it.each(["", "/tasks", "/steps", "/logs", "/logs/stream"])("is 404 at /runs/:id%s when there is none", async (rest) => {
    const { api } = await startAdminServer();
    const { status, body } = await api("GET", `/runs/nope${rest}`);
    expect([status, body.error.code]).toEqual([404, "LONGSHORE_NOT_FOUND"]);
  });

  it.each(["cancel", "retry", "rerun"])("refuses to %s a run that does not exist", async (verb) => {
    const { api } = await startAdminServer();
    expect((await api("POST", `/runs/nope/${verb}`)).status).toBe(404);
  });
});
