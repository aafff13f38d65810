// Every request that changes something is performed twice for a node, as after the node has lost its owner before the response. The second
// response must be the same as the first, and nothing may change. The same is tested with the next owner, and after a death before the
// response was stored.

import { expect, it } from "vitest";
import type { CarriedReply } from "../../src/cluster/carried-reply.ts";
import type { CarriedRequest } from "../../src/cluster/carried-request.ts";
import { type Action, actions } from "../../src/core/actions.ts";
import { LongshoreError } from "../../src/core/errors.ts";
import { type Asked, carriedOf, type Owner, openOwner, temporaryFolder } from "../support/twice-world.ts";

/** Requests that a worker may repeat: it gets another task each time, and a task that it does not receive is queued again. */
const handsOut: ReadonlySet<Action> = new Set(["task.claim", "bus.take"]);

/** Reports that the protocol refuses when a client sends them twice. */
const refused: readonly string[] = ["POST /api/jobs/:lease/complete", "POST /api/jobs/:lease/fail"];

const wg = (id: string) => ({
  id,
  name: id,
  trigger: "manual",
  jobs: [{ id: "a", name: "a", status: "queued", command: "make", depends_on: [] }],
});
const task = (type: string, ref: string, more: object = {}) => ({ name: ref, taskReferenceName: ref, type, ...more });
const conductor = (name: string, tasks: readonly object[], version = 1) => ({
  name,
  version,
  tasks,
  schemaVersion: 2,
  ownerEmail: "a@example.org",
  timeoutSeconds: 0,
  restartable: true,
});
const flow = { name: "f", steps: [{ id: "one", component: "/queue/one", input: {} }], output: { $step: "one" } };
const graph = { nodes: [{ node_id: "n1", type: "indexer", depends_on: [], fan_in: "all", io: {} }] };

type Ask = (asked: Asked) => Promise<CarriedReply>;
const textOf = ({ text, bytes }: CarriedReply) => text ?? (bytes === undefined ? "" : Buffer.from(bytes, "base64").toString());
const jsonOf = (reply: CarriedReply) => JSON.parse(textOf(reply)) as Record<string, never>;

/** Prepares and returns one request of each route. */
async function requests(ask: Ask, owner: Owner): Promise<Asked[]> {
  const made: Asked[] = [];
  const add = (route: string, more: Omit<Asked, "route"> = {}) => made.push({ route, ...more });
  const need = async (asked: Asked) => {
    const reply = await ask(asked);
    if (reply.status >= 300) throw new Error(`${asked.route} answered ${reply.status}: ${textOf(reply)}`);
    return reply;
  };

  // workflow-graph
  const claim = async (labels: string[] = []) =>
    (
      jsonOf(await need({ route: "POST /api/jobs/claim", body: { worker_id: "w", labels, lease_ttl_secs: 600 } })) as never as {
        lease: { lease_id: string };
      }
    ).lease.lease_id;
  add("POST /api/workers/register", { body: { worker_id: "w1", labels: ["linux"] } });
  await need({ route: "POST /api/workers/register", body: { worker_id: "w2", labels: [] } });
  add("POST /api/workers/:worker/heartbeat", { params: { worker: "w2" } });
  const line = { sequence: 1, stream: "stdout", data: "line\n", timestamp_ms: 1 };
  const bodies: Readonly<Record<string, (workflow: string) => unknown>> = {
    heartbeat: () => undefined,
    complete: () => ({ worker_id: "w", outputs: { a: "1" } }),
    fail: () => ({ worker_id: "w", error: "no" }),
    defer: () => ({ delay_ms: 600_000, output: { asked: 1 } }),
    logs: (workflow) => ({ worker_id: "w", chunks: [{ workflow_id: workflow, job_id: "a", ...line }] }),
  };
  for (const [verb, body] of Object.entries(bodies)) {
    const { id } = jsonOf(await need({ route: "POST /api/workflows", body: wg(verb) })) as never as { id: string };
    await need({ route: "POST /api/workflows/:workflow/run", params: { workflow: id } });
    add(`POST /api/jobs/:lease/${verb}`, { params: { lease: await claim() }, body: body(id) });
  }
  await need({ route: "POST /api/longshore/v1/definitions", body: { source: { name: "f", function: true } } });
  await need({ route: "POST /api/longshore/v1/runs", body: { workflow: "f" } });
  add("POST /api/jobs/:lease/commands", {
    params: { lease: await claim(["handler:function:f"]) },
    body: { by: "w-1", commands: [{ node: 1, kind: "step", name: "s", after: 0 }] },
  });
  await need({ route: "POST /api/longshore/v1/runs", body: { workflow: "f" } });
  const commands = [
    { node: 1, kind: "step", name: "s", after: 0 },
    { node: 2, kind: "run", name: "f", after: 0 },
    { node: 3, kind: "signal", name: "go", after: 0 },
    { node: 4, kind: "sleep", name: "", after: 0, forMs: 600_000 },
    { node: 5, kind: "local", name: "here", after: 0, output: 1 },
  ];
  const turn = { worker_id: "w", outputs: {}, output: { by: "w-2", commands } };
  add("POST /api/jobs/:lease/complete", { params: { lease: await claim(["handler:function:f"]) }, body: turn });
  const { id: reported } = jsonOf(await need({ route: "POST /api/workflows", body: wg("reported") })) as never as { id: string };
  await need({ route: "POST /api/workflows/:workflow/run", params: { workflow: reported } });
  add("POST /api/jobs/reports", {
    body: { reports: [{ lease: await claim(), verb: "complete", body: '{"outputs":{"a":"1"}}', key: "k" }] },
  });
  add("POST /api/workflows", { body: wg("new") });
  add("POST /api/workflows/sample");
  const { id: idle } = jsonOf(await need({ route: "POST /api/workflows", body: wg("idle") })) as never as { id: string };
  const { id: busy } = jsonOf(await need({ route: "POST /api/workflows", body: wg("busy") })) as never as { id: string };
  await need({ route: "POST /api/workflows/:workflow/run", params: { workflow: busy } });
  add("POST /api/workflows/:workflow/run", { params: { workflow: idle } });
  add("POST /api/workflows/:workflow/cancel", { params: { workflow: busy } });

  // Conductor
  const waits = [task("WAIT", "one"), task("WAIT", "two"), task("WAIT", "three")];
  await need({ route: "POST /api/metadata/workflow", body: conductor("waits", waits) });
  await need({ route: "POST /api/metadata/workflow", body: conductor("works", [task("SIMPLE", "work")]) });
  const start = async (name: string) => textOf(await need({ route: "POST /api/workflow/:name", params: { name }, body: {} }));
  const dead = async (name: string) => {
    const workflow = await start(name);
    await need({ route: "DELETE /api/workflow/:workflow", params: { workflow } });
    return workflow;
  };
  const polled = async () => {
    await start("works");
    const reply = await need({ route: "GET /api/tasks/poll/:type", params: { type: "work" } });
    return jsonOf(reply) as never as { taskId: string; workflowInstanceId: string };
  };
  const report = async () => ({ ...(await polled()), status: "COMPLETED", outputData: { a: 1 } });
  add("POST /api/tasks", { body: await report() });
  add("POST /api/tasks/update-v2", { body: await report() });
  const byName = { reference: "one", status: "COMPLETED" };
  add("POST /api/tasks/:workflow/:reference/:status", { params: { workflow: await start("waits"), ...byName }, body: { a: 1 } });
  add("POST /api/tasks/:workflow/:reference/:status/sync", { params: { workflow: await start("waits"), ...byName }, body: { a: 1 } });
  add("POST /api/tasks/:workflow/:status/signal", { params: { workflow: await start("waits"), status: "COMPLETED" }, body: { a: 1 } });
  add("POST /api/tasks/:workflow/:status/signal/sync", {
    params: { workflow: await start("waits"), status: "COMPLETED" },
    query: "timeoutMillis=10",
    body: { a: 1 },
  });
  add("POST /api/tasks/:task/log", { params: { task: (await polled()).taskId }, body: "a line" });
  add("POST /api/tasks/queue/requeue/:type", { params: { type: "work" } });
  add("POST /api/workflow", { body: { name: "waits", input: {} } });
  add("POST /api/workflow/:name", { params: { name: "waits" }, body: {} });
  add("POST /api/workflow/start/:name/:version", { params: { name: "waits", version: "1" }, body: {} });
  add("POST /api/workflow/execute/:name", { params: { name: "waits" }, query: "waitForSeconds=0", body: {} });
  add("POST /api/workflow/execute/:name/:version", {
    params: { name: "waits", version: "1" },
    query: "waitForSeconds=0",
    body: { name: "waits" },
  });
  add("DELETE /api/workflow/:workflow", { params: { workflow: await start("waits") } });
  add("DELETE /api/workflow/:workflow/remove", { params: { workflow: await dead("waits") } });
  add("DELETE /api/workflow/:workflow/terminate-remove", { params: { workflow: await start("waits") } });
  add("PUT /api/workflow/:workflow/pause", { params: { workflow: await start("waits") } });
  const paused = await start("waits");
  await need({ route: "PUT /api/workflow/:workflow/pause", params: { workflow: paused } });
  add("PUT /api/workflow/:workflow/resume", { params: { workflow: paused } });
  add("PUT /api/workflow/:workflow/skiptask/:reference", { params: { workflow: await start("waits"), reference: "two" }, body: {} });
  add("POST /api/workflow/:workflow/rerun", { params: { workflow: await dead("waits") }, body: {} });
  add("POST /api/workflow/:workflow/restart", { params: { workflow: await dead("waits") } });
  add("POST /api/workflow/:workflow/retry", { params: { workflow: await dead("waits") } });
  add("POST /api/workflow/:workflow/resetcallbacks", { params: { workflow: await start("waits") } });
  add("PUT /api/workflow/decide/:workflow", { params: { workflow: await start("waits") } });
  add("PUT /api/workflow/bulk/pause", { body: [await start("waits")] });
  const paused2 = await start("waits");
  await need({ route: "PUT /api/workflow/:workflow/pause", params: { workflow: paused2 } });
  add("PUT /api/workflow/bulk/resume", { body: [paused2] });
  add("POST /api/workflow/bulk/restart", { body: [await dead("waits")] });
  add("POST /api/workflow/bulk/retry", { body: [await dead("waits")] });
  add("POST /api/workflow/bulk/terminate", { body: [await start("waits")] });
  add("DELETE /api/workflow/bulk/remove", { body: [await dead("waits")] });
  add("DELETE /api/workflow/bulk/terminate-remove", { body: [await start("waits")] });
  const definition = (name: string) => ({ name, ownerEmail: "a@example.org", retryCount: 1 });
  add("POST /api/metadata/taskdefs", { body: [definition("d1")] });
  await need({ route: "POST /api/metadata/taskdefs", body: [definition("d2"), definition("d3"), definition("d4")] });
  add("PUT /api/metadata/taskdefs", { body: { ...definition("d2"), retryCount: 2 } });
  add("PUT /api/metadata/taskdefs/:name", { params: { name: "d4" }, body: { ...definition("d4"), retryCount: 2 } });
  add("DELETE /api/metadata/taskdefs/:name", { params: { name: "d3" } });
  add("POST /api/metadata/workflow", { body: conductor("created", waits) });
  add("PUT /api/metadata/workflow", { body: [conductor("put", waits)] });
  await need({ route: "POST /api/metadata/workflow", body: conductor("gone", waits) });
  add("DELETE /api/metadata/workflow/:name/:version", { params: { name: "gone", version: "1" } });
  const schema = (name: string) => ({ name, version: 1, type: "JSON", data: { type: "object" } });
  add("POST /api/schema", { body: [schema("s1")] });
  await need({ route: "POST /api/schema", body: [schema("s2"), schema("s3")] });
  add("DELETE /api/schema/:name", { params: { name: "s2" } });
  add("DELETE /api/schema/:name/:version", { params: { name: "s3", version: "1" } });
  const handler = (name: string) => ({
    ...{ name, event: `conductor:waits:${name}`, active: true },
    actions: [{ action: "start_workflow", start_workflow: { name: "waits" } }],
  });
  add("POST /api/event", { body: handler("e-new") });
  for (const name of ["e-put", "e-gone"]) await need({ route: "POST /api/event", body: handler(name) });
  add("PUT /api/event", { body: { ...handler("e-put"), active: false } });
  add("DELETE /api/event/:name", { params: { name: "e-gone" } });
  add("POST /api/workflow/test", { body: { name: "waits", taskRefToMockOutput: { one: [{ output: { a: 1 } }] } } });
  add("POST /api/admin/sweep/requeue/:workflow", { params: { workflow: await start("waits") } });
  add("POST /api/admin/consistency/verifyAndRepair/:workflow", { params: { workflow: await start("waits") } });
  add("POST /api/queue/update/:workflow/:reference/:status", { params: { workflow: await start("waits"), ...byName }, body: {} });
  const waiting = await start("waits");
  add("POST /api/queue/update/:workflow/task/:task/:status", {
    params: { workflow: waiting, task: `${waiting}.0.0`, status: "COMPLETED" },
    body: {},
  });
  const nightly = (name: string) => ({ name, cronExpression: "0 0 3 * * *", startWorkflowRequest: { name: "waits" } });
  const scheduled = async (name: string, more: object = {}) => {
    await need({ route: "POST /api/scheduler/schedules", body: { ...nightly(name), ...more } });
    return name;
  };
  add("POST /api/scheduler/schedules", { body: nightly("c-new") });
  add("POST /api/scheduler/schedules", { body: { ...nightly("c-new-paused"), paused: true, pausedReason: "why" } });
  add("DELETE /api/scheduler/schedules/:name", { params: { name: await scheduled("c-removed") } });
  add("PUT /api/scheduler/schedules/:name/pause", { params: { name: await scheduled("c-paused") } });
  add("PUT /api/scheduler/schedules/:name/resume", { params: { name: await scheduled("c-resumed", { paused: true }) } });
  add("PUT /api/scheduler/bulk/pause", { body: [await scheduled("c-paused-2")] });
  add("PUT /api/scheduler/bulk/resume", { body: [await scheduled("c-resumed-2", { paused: true })] });
  const ofFiles = await start("waits");
  const announced = { workflowId: ofFiles, fileName: "a.txt", contentType: "text/plain" };
  const file = async (upload: boolean) => {
    const made = jsonOf(await need({ route: "POST /api/files", body: announced })) as never as { fileHandleId: string };
    const params = { workflow: ofFiles, file: made.fileHandleId.split("/").at(-1) as string };
    if (upload) await need({ route: "PUT /api/files/content/:workflow/:file", params, body: Buffer.from("content") });
    return params;
  };
  add("POST /api/files", { body: announced });
  add("PUT /api/files/content/:workflow/:file", { params: await file(false), body: Buffer.from("other content") });
  add("POST /api/files/:workflow/:file/upload-complete", { params: await file(true) });

  // Stepflow
  add("POST /api/v1/flows", { body: { flow: { ...flow, name: "stored" } } });
  const stored = async (name: string) =>
    (jsonOf(await need({ route: "POST /api/v1/flows", body: { flow: { ...flow, name } } })) as never as { flowId: string }).flowId;
  const flowId = await stored("runs");
  const begun = async () =>
    (jsonOf(await need({ route: "POST /api/v1/runs", body: { flowId, input: [{}] } })) as never as { summary: { runId: string } }).summary
      .runId;
  const cancelled = async () => {
    const run = await begun();
    await need({ route: "POST /api/v1/runs/:run/cancel", params: { run }, body: {} });
    return run;
  };
  add("DELETE /api/v1/flows/:flow", { params: { flow: await stored("removed") } });
  add("POST /api/v1/runs", { body: { flowId, input: [{}] } });
  add("DELETE /api/v1/runs/:run", { params: { run: await cancelled() } });
  add("POST /api/v1/runs/:run/cancel", { params: { run: await begun() }, body: {} });
  add("POST /api/v1/runs/:run/retry", { params: { run: await cancelled() }, body: {} });
  add("POST /api/v1/blobs", { body: Buffer.from('{"data":{"a":1}}') });

  // FlowKit
  add("POST /flowkit/v1/bus/publish", { body: { records: [{ topic: "status.indexer.v1", key: "k", value: "{}" }] } });
  add("PUT /flowkit/v1/artifacts/workers/:worker/state", { params: { worker: "fw" }, body: { active_run: null } });
  add("GET /flowkit/v1/artifacts/workers/:worker/state", { params: { worker: "fw" } });
  add("POST /flowkit/v1/tasks", { body: { graph } });
  const { task_id: flowTask } = jsonOf(await need({ route: "POST /flowkit/v1/tasks", body: { graph } })) as never as { task_id: string };
  add("POST /flowkit/v1/tasks/:task/cancel", { params: { task: flowTask }, body: {} });
  const attempt = { task_id: flowTask, node_id: "n1", attempt_epoch: 1, worker_id: "fw", lease_id: "l" };
  add("POST /flowkit/v1/artifacts/partials", { body: `${JSON.stringify({ ...attempt, batch_uids: ["b1"] })}\n{}` });
  add("POST /flowkit/v1/artifacts/complete", { body: { ...attempt, meta: {} } });
  add("POST /flowkit/v1/artifacts/finish", { body: { ...attempt, parts: [] } });

  // Our own API
  const source = (name: string) => ({ name, steps: [{ id: "a", task: "later", input: null }], output: null });
  const row = {
    name: "row",
    steps: [
      { id: "a", task: "later", input: null },
      { id: "b", task: "later", input: null, after: ["a"] },
    ],
    output: null,
  };
  add("POST /api/longshore/v1/definitions", { body: { source: source("defined") } });
  await owner.engine.runs.define({ name: "own", dialect: "code", source: JSON.stringify(source("own")) });
  const own = async () => (await owner.engine.runs.start({ workflow: "own", input: "null" })).run.id;
  const ended = async () => {
    const id = await own();
    await owner.engine.runs.cancel(id);
    return id;
  };
  add("POST /api/longshore/v1/runs", { body: { workflow: "own", input: {} } });
  add("POST /api/longshore/v1/runs", { body: { workflow: "own", input: {}, key: "k", delayMs: 600_000, priority: 3 } });
  const hears = { ...source("hears"), events: [{ event: "heard" }] };
  await owner.engine.runs.define({ name: "hears", dialect: "code", source: JSON.stringify(hears) });
  add("POST /api/longshore/v1/events", { body: { name: "heard", payload: { n: 1 } } });
  add("POST /api/longshore/v1/events", { body: { name: "heard", payload: { n: 2 }, key: "k" } });
  add("POST /api/longshore/v1/runs/:id/cancel", { params: { id: await own() }, body: {} });
  add("POST /api/longshore/v1/runs/:id/signals", { params: { id: await own() }, body: { name: "go", value: { a: 1 } } });
  add("POST /api/longshore/v1/runs/:id/signals", { params: { id: await own() }, body: { name: "go", value: 1, key: "k" } });
  add("POST /api/longshore/v1/runs/:id/retry", { params: { id: await ended() } });
  add("POST /api/longshore/v1/runs/:id/rerun", { params: { id: await ended() } });
  add("POST /api/longshore/v1/runs/:id/rerun", { params: { id: await ended() }, body: { from: "a", stepInput: 1 } });
  add("POST /api/longshore/v1/runs/:id/restart", { params: { id: await ended() }, body: { input: 2 } });
  add("POST /api/longshore/v1/runs/:id/pause", { params: { id: await own() } });
  const paused3 = await own();
  await owner.engine.runs.tell(paused3, { kind: "pause" });
  add("POST /api/longshore/v1/runs/:id/resume", { params: { id: paused3 } });
  add("POST /api/longshore/v1/runs/:id/hasten", { params: { id: await own() } });
  await owner.engine.runs.define({ name: "row", dialect: "code", source: JSON.stringify(row) });
  const { run: inRow } = await owner.engine.runs.start({ workflow: "row", input: "null" });
  add("POST /api/longshore/v1/runs/:id/skip", { params: { id: inRow.id }, body: { step: "b", output: 1 } });
  add("DELETE /api/longshore/v1/runs/:id", { params: { id: await ended() } });
  add("POST /api/longshore/v1/bulk", { query: "waitMs=30000", body: { action: "cancel", ids: [await own(), await own()] } });
  const stopped = await owner.engine.bulk.create({
    action: "cancel",
    ids: [],
    filter: null,
    limit: 1,
    reason: null,
    dry: true,
    perSecond: null,
  });
  await owner.engine.bulk.stop(stopped.id);
  add("DELETE /api/longshore/v1/bulk/:id", { params: { id: stopped.id } });
  add("POST /api/longshore/v1/queues/pause", { body: { lane: "quiet", labels: ["b", "a"], reason: "why" } });
  await owner.engine.board.halts.pause({ name: "loud", labels: [] }, { reason: null, by: null });
  add("POST /api/longshore/v1/queues/resume", { body: { lane: "loud" } });
  add("POST /api/longshore/v1/dead-letters/retry", { body: { steps: [{ run: "none", step: "a" }], dry: true } });
  add("PUT /api/longshore/v1/limits/:key", { params: { key: "bank" }, body: { held: 3, reason: "why" } });
  await owner.engine.board.limits.change("post", { held: 1, reason: null, by: null });
  add("DELETE /api/longshore/v1/limits/:key", { params: { key: "post" } });
  add("POST /api/longshore/v1/workers/:id/cordon", { params: { id: "idle-1" }, body: { reason: "why" } });
  await owner.engine.board.halts.cordon("idle-2", { reason: null, by: null });
  add("POST /api/longshore/v1/workers/:id/uncordon", { params: { id: "idle-2" } });
  add("POST /api/longshore/v1/tasks", { body: { task: "single", input: 1 } });
  add("POST /api/longshore/v1/tasks", { body: { task: "single", input: 1, delayMs: 600_000, priority: 3 } });
  add("POST /api/longshore/v1/tasks/:id/cancel", { params: { id: `${await own()}.0` } });
  const rules = { workflow: "own", every: "1d", overlap: "allow" };
  const schedule = async (name: string, pause = false) => {
    await owner.engine.schedules.put({ name, rules, input: "null" });
    // So that nothing happens between two responses.
    if (pause) await owner.engine.schedules.pause(name, "for now");
    return { name };
  };
  add("PUT /api/longshore/v1/schedules/:name", { params: { name: "s-new" }, body: rules });
  add("DELETE /api/longshore/v1/schedules/:name", { params: await schedule("s-removed") });
  add("POST /api/longshore/v1/schedules/:name/pause", { params: await schedule("s-paused"), body: { reason: "why" } });
  add("POST /api/longshore/v1/schedules/:name/resume", { params: await schedule("s-resumed", true) });
  add("POST /api/longshore/v1/schedules/:name/run", { params: await schedule("s-run"), body: {} });
  const range = { from: "2026-01-01T00:00:00Z", to: "2026-01-05T00:00:00Z" };
  add("POST /api/longshore/v1/schedules/:name/backfill", { params: await schedule("s-filled", true), body: range });
  const filling = await schedule("s-filling", true);
  await owner.engine.schedules.backfill(filling.name, { from: 1, to: 1e9, overlap: "queue" });
  add("DELETE /api/longshore/v1/schedules/:name/backfill", { params: filling });
  add("POST /api/longshore/v1/blobs", { body: Buffer.from("some bytes") });
  const hash = "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa";
  add("PUT /api/longshore/v1/blobs/:hash", { params: { hash }, body: Buffer.from("other") });
  return made;
}

const answerOf = ({ status, text, bytes, headers }: CarriedReply) => ({ status, headers, text, bytes });

/** The listener of a node turns our errors into responses. Any other error is a defect. */
const refusal = (error: unknown): CarriedReply => ({ status: error instanceof LongshoreError ? 400 : 500, text: String(error) });

/** Performs them one after another. Returns the requests with their responses. */
async function performAll(owner: Owner): Promise<{ carried: CarriedRequest; first: CarriedReply }[]> {
  const asked = await requests((one) => owner.perform(carriedOf(one)), owner);
  const performed: { carried: CarriedRequest; first: CarriedReply }[] = [];
  for (const one of asked) {
    const carried = carriedOf(one);
    performed.push({ carried, first: await owner.perform(carried).catch(refusal) });
  }
  return performed;
}

it("every route that changes something has a request in this test", async () => {
  const owner = await openOwner(temporaryFolder());
  const changing = owner.groups
    .flatMap(({ routes }) => routes)
    .filter(({ action }) => !actions[action].reads && !handsOut.has(action))
    .map(({ method, path }) => `${method} ${path}`);
  const asked = await requests((one) => owner.perform(carriedOf(one)), owner);
  expect(new Set(asked.map(({ route }) => route))).toEqual(new Set(changing));
});

it("the same owner gives the same response and changes nothing", async () => {
  const owner = await openOwner(temporaryFolder());
  const performed = await performAll(owner);
  const failed = performed
    .filter(({ first }) => first.status >= 300)
    .map(({ carried, first }) => `${carried.route} ${first.status} ${textOf(first)}`);
  expect(failed).toEqual([]);
  const before = owner.rows();
  for (const { carried, first } of performed) {
    const second = await owner.perform(carried, true).catch(refusal);
    expect({ route: carried.route, ...answerOf(second) }).toEqual({ route: carried.route, ...answerOf(first) });
  }
  expect(owner.rows()).toEqual(before);
});

it("a report that a client itself sends twice is refused as the protocol requires", async () => {
  const owner = await openOwner(temporaryFolder());
  const performed = (await performAll(owner)).filter(({ carried }) => refused.includes(carried.route));
  expect(new Set(performed.map(({ carried }) => carried.route))).toEqual(new Set(refused));
  expect(new Set(performed.map(({ first }) => first.status))).toEqual(new Set([200]));
  for (const { carried } of performed) {
    const { id } = carriedOf({ route: carried.route });
    expect(await owner.perform({ ...carried, id })).toEqual({ status: 409 });
    // The refusal itself is also repeated.
    expect(await owner.perform({ ...carried, id }, true)).toEqual({ status: 409 });
  }
});

it("a task whose id the client has chosen is queued once, and the second response is about the same task", async () => {
  const folder = temporaryFolder();
  const owner = await openOwner(folder);
  const id = "0198f3c2-7d1e-7a51-9c0b-3f6a2d4e8b17";
  const carried = carriedOf({ route: "POST /api/longshore/v1/tasks", body: { id, task: "single", input: 1, delayMs: 600_000 } });
  const first = await owner.perform(carried);
  const second = await owner.perform(carried, true);
  expect([first.status, second.status]).toEqual([201, 200]);
  const rows = owner.rows();
  await owner.close();
  const next = await openOwner(folder);
  expect(textOf(await next.perform(carried, true))).toBe(textOf(first));
  expect(textOf(second)).toBe(textOf(first));
  expect(next.rows()).toEqual(rows);
});

for (const forgets of [false, true]) {
  it(
    forgets ? "the next owner changes nothing, even if the answer was not kept" : "the next owner answers the same and changes nothing",
    async () => {
      const folder = temporaryFolder();
      const first = await openOwner(folder, { forgets });
      const performed = await performAll(first);
      await first.close();
      const next = await openOwner(folder, { forgets });
      const before = next.rows();
      for (const { carried, first: was } of performed) {
        const second = await next.perform(carried, true).catch(refusal);
        if (forgets && !refused.includes(carried.route)) expect(second.status).toBeLessThan(500);
        else expect({ route: carried.route, ...answerOf(second) }).toEqual({ route: carried.route, ...answerOf(was) });
      }
      expect(next.rows()).toEqual(before);
    },
  );
}
