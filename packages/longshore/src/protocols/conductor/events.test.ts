// Events on a real server: EVENT tasks, event handlers, and tasks that start runs.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { type ConductorServer, startConductor } from "../../../test/support/conductor-rest.ts";
import { operator, simple } from "../../../test/support/conductor-world.ts";
import { eventually } from "../../../test/support/workflow-graph.ts";

// The first test loads the whole server, which takes long on a machine with much other work.
vi.setConfig({ testTimeout: 120_000 });
afterEach(() => vi.unstubAllEnvs());

interface Correlated {
  status: string;
  workflowId: string;
  event?: string;
  input: { [name: string]: unknown };
}

const noop = operator("NOOP", "nothing", {});
const event = (sink: string, inputParameters: object = {}) => operator("EVENT", "tell", { sink, inputParameters });
const starts = (name: string, more: object = {}) => ({ action: "start_workflow", start_workflow: { name, ...more } });
const correlated = (c: ConductorServer, name: string, id: string) =>
  c.read<Correlated[]>(`/workflow/${name}/correlated/${id}?includeClosed=true`);

it("starts a run for an event whose payload meets the condition of a handler", async () => {
  const c = await startConductor({ ephemeral: true });
  await c.workflow({ name: "ordered", tasks: [noop] });
  const start = starts("ordered", { correlationId: "order-${order.id}", input: { id: "${order.id}", text: "order ${order.id}" } });
  await c.ask("POST", "/event", {
    ...{ name: "large", event: "conductor:sender:tell", active: true },
    ...{ condition: "$.order.id > 5", actions: [start] },
  });
  await c.workflow({ name: "sender", tasks: [event("conductor", { order: "${workflow.input.order}" })] });
  for (const id of [4, 7]) {
    const sent = await c.start("sender", { input: { order: { id } } });
    await eventually(async () => (await c.status(sent)) === "COMPLETED");
  }
  await eventually(async () => (await correlated(c, "ordered", "order-7"))[0]?.status === "COMPLETED");
  const [run] = await correlated(c, "ordered", "order-7");
  expect(run).toMatchObject({
    event: "conductor:sender:tell",
    input: { id: 7, text: "order 7", "conductor.event.name": "conductor:sender:tell" },
  });
  expect(await correlated(c, "ordered", "order-4")).toEqual([]);
});

it("completes and fails waiting tasks by events", async () => {
  const c = await startConductor({ ephemeral: true });
  const act = (action: string) => ({
    ...{ name: action, event: `conductor:sender:${action}`, active: true },
    actions: [
      { action, [action]: { workflowId: "${target}", taskRefName: "ask", output: { n: "${n}" }, reasonForIncompletion: "told so" } },
    ],
  });
  for (const action of ["complete_task", "fail_task"]) await c.ask("POST", "/event", act(action));
  await c.workflow({ name: "waiting", tasks: [operator("HUMAN", "ask", {})] });
  const input = { target: "${workflow.input.target}", n: 5 };
  for (const [action, status] of [
    ["complete_task", "COMPLETED"],
    ["fail_task", "FAILED"],
  ] as const) {
    await c.workflow({ name: "sender", tasks: [event(`conductor:${action}`, input)] });
    const target = await c.start("waiting");
    await c.start("sender", { input: { target } });
    await eventually(async () => (await c.status(target)) === status);
    expect((await c.record(target, "ask")).outputData).toMatchObject({ n: 5, workflowId: target, taskRefName: "ask" });
  }
});

it("performs only what the handler says now, and nothing once it is inactive or removed", async () => {
  const c = await startConductor({ ephemeral: true });
  for (const name of ["first", "second"]) await c.workflow({ name, tasks: [noop] });
  const handler = { name: "one", event: "conductor:sender:tell", active: true };
  await c.ask("POST", "/event", { ...handler, actions: [starts("first", { correlationId: "${n}" })] });
  await c.ask("PUT", "/event", { ...handler, actions: [starts("second", { correlationId: "${n}" })] });
  await c.workflow({ name: "sender", tasks: [event("conductor", { n: "${workflow.input.n}" })] });
  await c.start("sender", { input: { n: "changed" } });
  await eventually(async () => (await correlated(c, "second", "changed")).length === 1);
  expect(await correlated(c, "first", "changed")).toEqual([]);

  await c.ask("PUT", "/event", { ...handler, event: "conductor:sender:other", actions: [starts("second", { correlationId: "${n}" })] });
  await c.workflow({ name: "mover", tasks: [event("conductor:other", { n: "${workflow.input.n}" })] });
  expect(await c.read("/event/conductor:sender:tell")).toEqual([]);
  expect(await c.read("/event/conductor:sender:other")).toHaveLength(1);
  await c.ask("DELETE", "/event/one");
  expect(await c.read("/event")).toEqual([]);
  expect((await c.send("DELETE", "/event/one")).status).toBe(404);
});

it("refuses handlers and sinks of services that the server cannot reach, by name", async () => {
  const c = await startConductor({ ephemeral: true });
  for (const kind of ["kafka", "nats", "sqs", "amqp", "amqp_queue", "amqp_exchange", "nats_stream"]) {
    const handler = await c.send("POST", "/event", { name: "h", event: `${kind}:q`, actions: [starts("x")] });
    expect(handler.status).toBe(400);
    expect(handler.text).toContain(`${kind}:q`);
    const workflow = await c.send("POST", "/metadata/workflow", { name: "w", tasks: [event(`${kind}:q`)] });
    expect(workflow.status).toBe(400);
    expect(workflow.text).toContain(`${kind}:q`);
  }
  const unknown = await c.send("POST", "/event", { name: "h", event: "conductor:a:b", actions: [{ action: "terminate_workflow" }] });
  expect(unknown.text).toContain(
    "the action terminate_workflow is not supported by this server, expected one of start_workflow, complete_task, fail_task",
  );
});

it("starts another workflow, which inherits what the request does not say", async () => {
  vi.stubEnv("CONDUCTOR_SECRET_KEY", "s3cret");
  const c = await startConductor({ ephemeral: true });
  await c.workflow({
    name: "child",
    tasks: [{ ...simple("work"), inputParameters: { key: "${workflow.input.key}", said: "${workflow.input.said}" } }],
  });
  const startWorkflow = { name: "child", input: { key: "${workflow.secrets.KEY}", said: "${workflow.input.said}" } };
  const id = await c.begin([operator("START_WORKFLOW", "begin", { inputParameters: { startWorkflow } })], {
    ...{ name: "parent" },
    start: { correlationId: "family", input: { said: "${workflow.secrets.KEY}" }, taskToDomain: { work: "mine" } },
  });
  await eventually(async () => (await c.status(id)) === "COMPLETED");
  const { workflowId } = (await c.record(id, "begin")).outputData as { workflowId: string };
  await eventually(async () => (await c.run(workflowId)).tasks.length === 1);
  expect(await c.run(workflowId)).toMatchObject({ correlationId: "family", input: { key: "${workflow.secrets.KEY}" } });
  const task = await c.take("work", { domain: "mine" });
  // The definition's secret is filled in, the same text in the data of the run is not.
  expect(task.inputData).toEqual({ key: "s3cret", said: "${workflow.secrets.KEY}" });
});

it("fails a START_WORKFLOW with the reason, and tries it again by its definition", async () => {
  const c = await startConductor({ ephemeral: true });
  await c.taskDef({ name: "begin", retryCount: 1, retryDelaySeconds: 0 });
  const id = await c.begin([operator("START_WORKFLOW", "begin", { inputParameters: { startWorkflow: { name: "nobody" } } })]);
  await eventually(async () => (await c.status(id)) === "FAILED");
  const run = await c.run(id);
  expect(run.tasks.map(({ status, reasonForIncompletion }) => [status, reasonForIncompletion])).toEqual([
    ["FAILED", "No such workflow defined. name=nobody, version=null"],
    ["FAILED", "No such workflow defined. name=nobody, version=null"],
  ]);
});

it("leaves an asynchronous call open over a restart, and does not repeat it", async () => {
  vi.stubEnv("CONDUCTOR_HTTP_TARGETS", "127.0.0.1");
  let calls = 0;
  const target = createServer((_request, response) => response.end(`"${++calls}"`)).listen(0, "127.0.0.1");
  const uri = `http://127.0.0.1:${await new Promise<number>((resolve) => target.on("listening", () => resolve((target.address() as AddressInfo).port)))}`;
  const first = await startConductor();
  const call = operator("HTTP", "call", { asyncComplete: true, inputParameters: { uri, method: "GET" } });
  const id = await first.begin([call]);
  const stopped = await first.start("w");
  const called = (c: ConductorServer, run: string) =>
    eventually(async () => (await c.record(run, "call")).outputData.response !== undefined);
  for (const run of [id, stopped]) await called(first, run);
  await first.close();

  const c = await startConductor({}, first);
  expect(await c.record(id, "call")).toMatchObject({ status: "IN_PROGRESS", outputData: { response: { statusCode: 200 } } });
  // A report without an end changes the output only.
  await c.signal(id, "call", { seen: true }, "IN_PROGRESS");
  expect(await c.record(id, "call")).toMatchObject({ status: "IN_PROGRESS", outputData: { seen: true } });
  await c.signal(id, "call", { later: true });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { later: true, response: { statusCode: 200 } } });
  await c.order("DELETE", stopped, "");
  expect(await c.statuses(stopped)).toEqual(["call:CANCELED"]);
  expect(calls).toBe(2);
  target.close();
});

it("performs a handler once for an event that is sent twice with one key, also by another protocol", async () => {
  const c = await startConductor({ ephemeral: true });
  await c.workflow({ name: "counted", tasks: [noop] });
  const actions = [starts("counted", { correlationId: "${n}" }), starts("counted", { correlationId: "done-${n}" })];
  await c.ask("POST", "/event", { name: "h", event: "conductor:outside:x", active: true, actions });
  const body = JSON.stringify({ name: "conductor:outside:x", payload: { n: 1 }, key: "k" });
  for (const _time of ["first", "second"]) {
    const answer = await fetch(`${c.url}/api/longshore/v1/events`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(202);
    await eventually(async () => (await correlated(c, "counted", "done-1")).length > 0);
  }
  expect(await correlated(c, "counted", "1")).toHaveLength(1);
  expect(await correlated(c, "counted", "done-1")).toHaveLength(1);
});

it("refuses more handlers of one event than an event can have tasks", async () => {
  const c = await startConductor({ ephemeral: true });
  const handler = (name: string) => c.send("POST", "/event", { name, event: "conductor:a:b", actions: [starts("x")] });
  for (let at = 0; at < 100; at++) expect((await handler(`h${at}`)).status).toBe(200);
  const refused = await handler("one too many");
  expect([refused.status, refused.text]).toEqual([
    expect.any(Number),
    expect.stringContaining("conductor:a:b has 100 subscribers already"),
  ]);
  expect(Math.floor(refused.status / 100)).toBe(4);
  expect(await c.read("/event")).toHaveLength(100);
});
