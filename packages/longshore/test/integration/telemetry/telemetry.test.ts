// Spans and log records of real workers, as a collector receives them.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { TerminalError } from "../../../src/core/errors.ts";
import { task } from "../../../src/core/task.ts";
import { traceparent } from "../../../src/core/trace.ts";
import { telemetryVariables } from "../../../src/protocols/stepflow/worker/environment.ts";
import { stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import { workflowGraph } from "../../../src/protocols/workflow-graph/worker/index.ts";
import { serve } from "../../../src/server/index.ts";
import { telemetry } from "../../../src/telemetry/index.ts";
import { work } from "../../../src/work.ts";
import { grpcCollector, httpCollector } from "../../support/collector.ts";
import { anyUpdate } from "../../support/conductor-stub.ts";
import { setup as conductorSetup } from "../../support/conductor-worker.ts";
import { freePort } from "../../support/port.ts";
import { blobStore, setup } from "../../support/stepflow-runtime.ts";
import { until } from "../../support/until.ts";

const variables = [telemetryVariables];

const observability = {
  trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890",
  span_id: "1234567890abcdef",
  run_id: "run-12345",
  flow_id: "sha256:abc123",
  step_id: "process_step",
};

const greet = task("greet", async ({ name }: { name: string }, ctx) => {
  ctx.log(`greeting ${name}`);
  ctx.log({ level: "debug", message: "details", rows: 3 });
  ctx.log({ level: "error", message: "odd", rows: [1] }, "stderr");
  return { text: `Hello, ${name}!`, traceparent: ctx.trace === undefined ? null : traceparent(ctx.trace) };
});
const fails = task("fails", () => {
  throw new RangeError("too far");
});
const never = task("never", () => {
  throw new TerminalError("never");
});
const tasks = [greet, fails, never];

describe.each([
  ["HTTP in JSON", httpCollector, "http/json"],
  ["HTTP in protobuf", httpCollector, "http/protobuf"],
  ["gRPC", grpcCollector, "grpc"],
] as const)("over %s", (_name, collect, protocol) => {
  it("[S-OBS-01, S-OBS-08, S-OBS-09] an execution is a span below the caller's, with the guide's name and attributes", async () => {
    const collector = await collect();
    const watched = await telemetry({ endpoint: collector.endpoint, protocol, service: "my-worker", logs: [], env: {} });
    await using s = await setup({ tasks, work: { telemetry: watched } });
    const { answer } = await s.runtime.execute("/my_worker/greet", { name: "Ada" }, { attempt: 2, observability });
    await s.worker.stop();
    const [span] = collector.spans;
    expect(collector.spans).toHaveLength(1);
    expect(span).toMatchObject({
      traceId: observability.trace_id,
      parentSpanId: observability.span_id,
      name: "component.execute",
      kind: 2,
      status: { code: 0 },
      events: [],
      flags: 0x301,
      attributes: {
        "stepflow.component": "/my_worker/greet",
        "stepflow.step_id": "process_step",
        "stepflow.run_id": "run-12345",
        "stepflow.flow_id": "sha256:abc123",
        component: "/my_worker/greet",
        attempt: 2,
        run_id: "run-12345",
        flow_id: "sha256:abc123",
        step_id: "process_step",
        "longshore.task": "greet",
      },
      resource: { "service.name": "my-worker", "process.pid": process.pid, "telemetry.sdk.name": "opentelemetry" },
    });
    expect(span?.spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(span?.spanId).not.toBe(observability.span_id);
    expect(span?.endNs).toBeGreaterThanOrEqual(span?.startNs ?? 0n);
    expect(BigInt(Date.now()) * 1_000_000n - (span?.startNs ?? 0n)).toBeLessThan(60_000_000_000n);
    // The handler has its own span, to pass it on.
    expect(answer.result.output.traceparent).toBe(`00-${observability.trace_id}-${span?.spanId}-01`);
  });

  it("[S-OBS-09] a span of a failure has its status and the exception", async () => {
    const collector = await collect();
    await using s = await setup({
      tasks,
      work: { telemetry: await telemetry({ endpoint: collector.endpoint, protocol, logs: [], env: {} }) },
    });
    await s.runtime.execute("/fails", {}, { observability });
    await s.worker.stop();
    expect(collector.spans).toMatchObject([
      {
        status: { code: 2, message: "too far" },
        events: [{ name: "exception", attributes: { "exception.type": "RangeError", "exception.message": "too far" } }],
      },
    ]);
    expect(collector.spans[0]?.events[0]?.attributes["exception.stacktrace"]).toContain("telemetry.test.ts");
  });

  it("[S-OBS-07] a call from outside any flow names no run, flow or step", async () => {
    const collector = await collect();
    await using s = await setup({
      tasks,
      work: { logger: undefined, telemetry: await telemetry({ endpoint: collector.endpoint, protocol, env: {} }) },
    });
    await s.runtime.execute("/greet", { name: "Ada" }, { observability: {} });
    await s.worker.stop();
    const line = collector.logs.find(({ attributes }) => attributes.logger === "longshore.greet");
    expect(Object.keys(line?.attributes ?? {})).toEqual(["logger", "attempt"]);
    expect(Object.keys(collector.spans[0]?.attributes ?? {}).filter((key) => /(run|flow|step)_id$/.test(key))).toEqual([]);
  });

  it("[S-OBS-02, S-OBS-03, S-OBS-04] log records have the run, flow, step, trace and span that they belong to", async () => {
    const collector = await collect();
    await using s = await setup({
      tasks,
      work: { logger: undefined, telemetry: await telemetry({ endpoint: collector.endpoint, protocol, env: {} }) },
    });
    await s.runtime.execute("/greet", { name: "Ada" }, { observability });
    await s.worker.stop();
    const [span] = collector.spans;
    const lines = collector.logs.filter(({ attributes }) => attributes.logger === "longshore.greet");
    expect(lines.map(({ severity, body }) => [severity, body])).toEqual([
      [[9, "INFO"], "greeting Ada"],
      [[17, "ERROR"], "odd"],
    ]);
    for (const line of lines) {
      expect(line).toMatchObject({
        traceId: observability.trace_id,
        spanId: span?.spanId,
        attributes: { run_id: "run-12345", flow_id: "sha256:abc123", step_id: "process_step", attempt: 1 },
        resource: { "service.name": "longshore-worker" },
      });
    }
    expect(lines[1]?.attributes.rows).toBe("[1]");
    // The worker's own log records are also exported, without a run.
    expect(collector.logs.find(({ attributes }) => attributes.logger === "longshore")?.body).toContain("Stepflow workers are called at");
  });
});

it("[S-OBS-05, S-OBS-07] all calls of a component have the same trace, its own span and the ids of its work", async () => {
  const collector = await httpCollector();
  const everything = task("everything", async () => {
    const { putBlob, getBlob, submitRun, getRun } = stepflowTask();
    await getBlob(await putBlob({ a: 1 }));
    await getRun((await submitRun({ flowId: "f", input: [1] })).runId);
    return "asked";
  });
  const watched = await telemetry({ endpoint: collector.endpoint, logs: [], env: {} });
  await using s = await setup({ tasks: [everything], work: { telemetry: watched } });
  const blobs = blobStore();
  const respond: typeof blobs.respond = (call) =>
    call.method.startsWith("runs/") ? { result: { runId: "r2", flowId: "f", status: "running" } } : blobs.respond(call);
  const { calls } = await s.runtime.execute("/everything", {}, { observability, respond });
  await s.worker.stop();
  const [span] = collector.spans;
  expect(span?.spanId).toMatch(/^[0-9a-f]{16}$/);
  expect(span?.spanId).not.toBe(observability.span_id);
  expect(calls.map(({ method }) => method)).toEqual(["blobs/put", "blobs/get", "runs/submit", "runs/get"]);
  for (const { params } of calls) expect(params.observability).toEqual({ ...observability, span_id: span?.spanId });
});

it("[S-OBS-05, S-OBS-07] without tracing here, they have the caller's span", async () => {
  const keep = task("keep", async () => stepflowTask().putBlob({ a: 1 }));
  await using s = await setup({ tasks: [keep] });
  const { respond } = blobStore();
  expect((await s.runtime.execute("/keep", {}, { observability, respond })).calls[0].params.observability).toEqual(observability);
  expect((await s.runtime.execute("/keep", {}, { respond })).calls[0].params.observability).toEqual({});
});

it("[S-OBS-11, S-BP-06, S-OBS-10] without a collector the log is JSON on standard error, with the handler's context in every line", async () => {
  const lines: Record<string, unknown>[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    lines.push(JSON.parse(String(text)));
    return true;
  });
  onTestFinished(() => write.mockRestore());
  const watched = await telemetry({ env: { STEPFLOW_LOG_LEVEL: "DEBUG" }, variables });
  const s = await setup({ tasks, work: { logger: undefined, telemetry: watched } });
  await s.runtime.execute("/greet", { name: "Ada" }, { observability });
  await s.runtime.execute("/never", {}, { observability });
  s.runtime.close();
  await s.worker.stop();
  write.mockRestore();
  const context = {
    flow_id: "sha256:abc123",
    run_id: "run-12345",
    step_id: "process_step",
    trace_id: observability.trace_id,
    span_id: observability.span_id,
    attempt: 1,
  };
  const ofGreet = lines.filter(({ logger }) => logger === "longshore.greet");
  expect(ofGreet).toMatchObject([
    { ...context, level: "DEBUG", message: "greet begins" },
    { ...context, level: "INFO", message: "greeting Ada" },
    { ...context, level: "DEBUG", message: "details", rows: 3 },
    { ...context, level: "ERROR", message: "odd", rows: [1] },
    { ...context, level: "DEBUG", message: "greet ended: done" },
  ]);
  expect(ofGreet[0]?.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(lines.filter(({ logger }) => logger === "longshore.never").at(-1)).toMatchObject({
    ...context,
    level: "ERROR",
    message: "never failed: never",
    error: "TerminalError",
    retryable: false,
  });
  expect(lines.find(({ logger }) => logger === "longshore")).toMatchObject({ level: "INFO", message: expect.stringContaining("/greet") });
});

it("[S-OBS-14, S-OBS-16] a file and a collector can get the log at the same time, and traces may be off", async () => {
  const folder = mkdtempSync(join(tmpdir(), "longshore-telemetry-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const collector = await httpCollector();
  const env = {
    STEPFLOW_OTLP_ENDPOINT: collector.endpoint,
    STEPFLOW_LOG_DESTINATION: "file,otlp",
    STEPFLOW_LOG_FILE: join(folder, "worker.log"),
    STEPFLOW_TRACE_ENABLED: "false",
  };
  await using s = await setup({ tasks, work: { logger: undefined, telemetry: await telemetry({ env, variables }) } });
  await s.runtime.execute("/greet", { name: "Ada" }, { observability });
  await s.worker.stop();
  const written = readFileSync(env.STEPFLOW_LOG_FILE, "utf8").trim().split("\n");
  expect(written.map((line) => JSON.parse(line).message)).toContain("greeting Ada");
  expect(collector.logs.map(({ body }) => body)).toEqual(written.map((line) => JSON.parse(line).message));
  expect(collector.spans).toEqual([]);
});

it.each([
  ["DEBUG", ["talks begins", "detail", "plain", "warned", "failed", "talks ended: done"]],
  ["INFO", ["plain", "warned", "failed"]],
  ["WARNING", ["warned", "failed"]],
  ["ERROR", ["failed"]],
])("[S-OBS-15] at the level %s the log has nothing below it", async (level, messages) => {
  const talks = task("talks", (_input: unknown, ctx) => {
    ctx.log({ level: "debug", message: "detail" });
    ctx.log("plain");
    ctx.log("warned", "stderr");
    ctx.log({ level: "error", message: "failed" });
    return "said";
  });
  const collector = await httpCollector();
  const env = { STEPFLOW_OTLP_ENDPOINT: collector.endpoint, STEPFLOW_LOG_LEVEL: level };
  await using s = await setup({ tasks: [talks], work: { logger: undefined, telemetry: await telemetry({ env, variables }) } });
  await s.runtime.execute("/talks", {}, { observability });
  await s.worker.stop();
  const lines = collector.logs.filter(({ attributes }) => attributes.logger === "longshore.talks");
  expect(lines.map(({ body }) => body)).toEqual(messages);
});

describe("a collector", () => {
  it("that is down for a moment over HTTP loses nothing, and gets the headers with every attempt", async () => {
    const collector = await httpCollector();
    collector.troubles.push(503, 429);
    const watched = await telemetry({ endpoint: collector.endpoint, logs: [], headers: { authorization: "Bearer x" }, env: {} });
    await using s = await setup({ tasks, work: { telemetry: watched } });
    await s.runtime.execute("/greet", { name: "Ada" });
    await s.worker.stop();
    expect(collector.spans).toHaveLength(1);
    expect(collector.headers).toHaveLength(3);
    expect(collector.headers.every(({ authorization, path }) => authorization === "Bearer x" && path === "/otlp/v1/traces")).toBe(true);
  });

  it("that is down for a moment over gRPC loses nothing, and gets the headers", async () => {
    const said = stderrTexts();
    const port = await freePort();
    const endpoint = `http://127.0.0.1:${port}`;
    const headers = { authorization: "Bearer x" };
    const watched = await telemetry({ endpoint, protocol: "grpc", logs: [], headers, env: {} });
    await using s = await setup({ tasks, work: { telemetry: watched } });
    await s.runtime.execute("/greet", { name: "Ada" });
    await until(() => said.join("").includes("the export of spans fails"));
    const collector = await grpcCollector(port);
    await until(() => collector.spans.length > 0);
    await s.worker.stop();
    expect(collector.spans).toHaveLength(1);
    expect(collector.headers).toMatchObject([headers]);
    expect(said.join("")).toContain("the export of spans works again");
    expect(said.join("")).not.toContain("lost");
  });

  it("that refuses a batch does not get it again, and the worker reports this and continues", async () => {
    const said = stderrTexts();
    const collector = await httpCollector();
    collector.troubles.push(400);
    await using s = await setup({ tasks, work: { telemetry: await telemetry({ endpoint: collector.endpoint, logs: [], env: {} }) } });
    expect((await s.runtime.execute("/greet", { name: "Ada" })).answer.result.output.text).toBe("Hello, Ada!");
    await s.worker.stop();
    expect(collector.headers).toHaveLength(1);
    expect(said.join("")).toMatch(/the export of spans fails, trying on: .*answered 400: trouble\n.*lost 1 spans, which/s);
  });
});

it("the spans and records of a burst all arrive at the end, without a queue that grows beyond its limit", async () => {
  const collector = await httpCollector();
  const chatty = task("chatty", (_input: unknown, ctx) => {
    for (let line = 0; line < 2_000; line++) ctx.log(`line ${line}`);
    return "said";
  });
  const watched = await telemetry({ endpoint: collector.endpoint, env: {} });
  await using s = await setup({ tasks: [chatty], work: { logger: undefined, telemetry: watched } });
  for (let n = 0; n < 3; n++) await s.runtime.execute("/chatty");
  await s.worker.stop();
  expect(collector.spans).toHaveLength(3);
  expect(collector.logs.filter(({ attributes }) => attributes.logger === "longshore.chatty")).toHaveLength(6_000);
});

/** The worker's output on standard error from now on. */
function stderrTexts(): string[] {
  const texts: string[] = [];
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => texts.push(String(text)) > 0);
  onTestFinished(() => write.mockRestore());
  return texts;
}

describe("every protocol creates the same spans", () => {
  it("from a Conductor worker", async () => {
    const collector = await httpCollector();
    const watched = await telemetry({ endpoint: collector.endpoint, logs: ["otlp"], env: {} });
    await using s = await conductorSetup({ tasks: [greet], work: { telemetry: watched, logger: undefined } });
    s.stub.enqueue("greet", { inputData: { name: "Ada" } });
    await s.stub.next(anyUpdate);
    await s.worker.stop({ force: true });
    expect(collector.spans).toMatchObject([
      { name: "task.execute", kind: 5, parentSpanId: "", attributes: { "longshore.task": "greet", "longshore.attempt": 1 } },
    ]);
    const line = collector.logs.find(({ body }) => body === "greeting Ada");
    expect(line).toMatchObject({ traceId: collector.spans[0]?.traceId, spanId: collector.spans[0]?.spanId });
    expect(line?.attributes).toMatchObject({ run_id: expect.any(String), step_id: expect.any(String) });
  });

  it("from a workflow-graph worker", async () => {
    const collector = await httpCollector();
    const server = await serve({ ephemeral: true, port: 0, logger: { level: "error" } });
    onTestFinished(() => server.close());
    const watched = await telemetry({ endpoint: collector.endpoint, logs: [], env: {} });
    const worker = await work({
      tasks: [greet],
      on: workflowGraph(server.url as string),
      signals: false,
      logger: false,
      telemetry: watched,
    });
    expect(await server.call("greet", { name: "Ada" })).toMatchObject({ text: "Hello, Ada!" });
    await worker.stop();
    expect(collector.spans).toMatchObject([{ name: "task.execute", attributes: { "longshore.task": "greet" } }]);
  });
});
