// The small parts of the drop-in replacement that programs use separately.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { until } from "../../../../../test/support/until.ts";
import { connectionOf } from "./client.ts";
import {
  CanonicalMetricsCollector,
  createConductorClient,
  DefaultLogger,
  EventDispatcher,
  generateSchemaFromClass,
  isTaskInProgress,
  jsonSchema,
  MetricsServer,
  NonRetryableException,
  OrkesClients,
  schemaField,
  TaskContext,
} from "./index.ts";
import { findModule } from "./modules.ts";

describe("the client", () => {
  it("prefers the address in the environment to that in the code, with or without /api", async () => {
    expect((await createConductorClient({ serverUrl: "http://code:1/api/" })).getConfig()).toEqual({ baseUrl: "http://code:1" });
    vi.stubEnv("CONDUCTOR_SERVER_URL", "http://env:2");
    onTestFinished(() => void vi.unstubAllEnvs());
    const client = (await OrkesClients.from({ serverUrl: "http://code:1" })).getClient();
    expect(client.getConfig()).toEqual({ baseUrl: "http://env:2" });
    expect(client.stopBackgroundRefresh()).toBeUndefined();
  });

  it("passes all settings of the connection to a worker", async () => {
    const folder = mkdtempSync(join(tmpdir(), "longshore-drop-in-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "ca.pem"), "CA");
    const client = await createConductorClient({
      serverUrl: "https://host",
      keyId: "k",
      keySecret: "s",
      refreshTokenInterval: 60_000,
      requestTimeoutMs: 1_000,
      connectTimeoutMs: 2_000,
      proxyUrl: "http://proxy",
      disableHttp2: true,
      tlsCaPath: join(folder, "ca.pem"),
      tlsInsecure: true,
    });
    expect(connectionOf(client)).toEqual({
      url: "https://host",
      options: {
        keyId: "k",
        keySecret: "s",
        refreshToken: 60_000,
        requestTimeout: 1_000,
        connectTimeout: 2_000,
        proxy: "http://proxy",
        http2: false,
        tls: { ca: "CA", insecure: true },
      },
    });
  });
});

describe("hand-written schemas", () => {
  it("[C-SCH-01, C-SCH-02] are made from a list of fields", () => {
    expect(
      jsonSchema({
        id: { type: "string", required: true, description: "Which." },
        tags: { type: "array", items: { type: "string" } },
        address: { type: "object", properties: { street: { type: "string", required: true }, city: { type: "string" } } },
        size: { type: "string", enum: ["s", "m"], default: "m" },
      }),
    ).toEqual({
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        id: { type: "string", description: "Which." },
        tags: { type: "array", items: { type: "string" } },
        address: { type: "object", properties: { street: { type: "string" }, city: { type: "string" } }, required: ["street"] },
        size: { type: "string", enum: ["s", "m"], default: "m" },
      },
      required: ["id"],
    });
  });

  it("are made from a class and the classes it extends", () => {
    class Base {}
    class Order extends Base {}
    schemaField({ type: "string", required: true })(Base.prototype, "id");
    schemaField({ type: "number" })(Order.prototype, "amount");
    expect(generateSchemaFromClass(Order)).toMatchObject({
      properties: { id: { type: "string" }, amount: { type: "number" } },
      required: ["id"],
    });
    expect(Object.keys(generateSchemaFromClass(Base).properties)).toEqual(["id"]);
  });

  it("take a field's type from its first value, also when the constructor of the class throws", () => {
    const field = schemaField({ required: true })(undefined, { kind: "field", name: "list" } as never);
    class Odd {
      list = field.call({}, []);
      constructor(needed?: { value: number }) {
        void (needed as { value: number }).value;
      }
    }
    expect(generateSchemaFromClass(Odd)).toMatchObject({ properties: { list: { type: "array" } }, required: ["list"] });
  });
});

describe("an EventDispatcher", () => {
  it("[C-EVT-09, C-EVT-11] calls the listener methods that exist, and continues when one throws", async () => {
    const errors: unknown[] = [];
    const dispatcher = new EventDispatcher({ ...new DefaultLogger(), error: (...args: unknown[]) => void errors.push(args) });
    const heard: string[] = [];
    const last = { onTaskPaused: ({ taskType }: { taskType: string }) => void heard.push(taskType) };
    dispatcher.register({ onTaskPaused: () => Promise.reject(new Error("mine")) });
    dispatcher.register({});
    dispatcher.register(last);
    await dispatcher.publishTaskPaused({ taskType: "a", timestamp: new Date() });
    dispatcher.unregister(last);
    await dispatcher.publishTaskPaused({ taskType: "b", timestamp: new Date() });
    expect(heard).toEqual(["a"]);
    expect(errors).toEqual([["onTaskPaused threw: mine"], ["onTaskPaused threw: mine"]]);
  });
});

describe("a metrics collector", () => {
  const at = { taskType: "t", timestamp: new Date(), taskId: "1", workerId: "w" };

  it("[C-MET-09, C-MET-13] counts values from events and from direct calls", () => {
    const collector = new CanonicalMetricsCollector();
    collector.onPollStarted({ ...at, pollCount: 1 });
    collector.onPollCompleted({ ...at, durationMs: 5, tasksReceived: 1 });
    collector.onPollFailure({ ...at, durationMs: 5, cause: new TypeError("x") });
    collector.onTaskExecutionStarted(at);
    collector.onTaskExecutionStarted(at);
    collector.onTaskExecutionFailure({ ...at, durationMs: 1, cause: new NonRetryableException("x") });
    collector.recordWorkerRestart("t");
    const text = collector.toPrometheusText();
    expect(text.split("\n")).toEqual(
      expect.arrayContaining([
        'task_poll_total{taskType="t"} 1',
        'task_poll_error_total{taskType="t",exception="TypeError"} 1',
        'task_execution_started_total{taskType="t"} 2',
        'task_execute_error_total{taskType="t",exception="NonRetryableException",retryable="false"} 1',
        'active_workers{taskType="t"} 1',
        'worker_restart_total{task_type="t"} 1',
      ]),
    );
    collector.reset();
    expect(collector.toPrometheusText()).not.toContain('"t"');
    expect([collector.collectorName(), collector.getContentType()]).toEqual(["canonical", expect.stringMatching(/^text\/plain/)]);
  });

  it("[C-MET-14, C-MET-15] has the names of metrics that no worker counts, for programs that count them themselves", () => {
    const collector = new CanonicalMetricsCollector();
    collector.recordTaskPaused("t");
    collector.recordTaskExecutionQueueFull("t");
    collector.recordTaskAckError("t");
    collector.recordTaskAckFailed("t");
    collector.recordUncaughtException("TypeError");
    collector.recordExternalPayloadUsed("WORKFLOW_INPUT", "flow", "WRITE");
    collector.recordWorkflowStartError("flow", "RangeError");
    collector.recordWorkflowInputSize("flow", 500, "2");
    const lines = collector.toPrometheusText().split("\n");
    expect(lines).toEqual(
      expect.arrayContaining([
        'task_paused_total{taskType="t"} 1',
        'task_execution_queue_full_total{taskType="t"} 1',
        'task_ack_error_total{taskType="t",exception="unknown"} 1',
        'task_ack_failed_total{taskType="t"} 1',
        'thread_uncaught_exceptions_total{exception="TypeError"} 1',
        'external_payload_used_total{entityName="flow",operation="WRITE",payloadType="WORKFLOW_INPUT"} 1',
        'workflow_start_error_total{workflowType="flow",exception="RangeError"} 1',
        'workflow_input_size_bytes_bucket{workflowType="flow",version="2",le="100"} 0',
        'workflow_input_size_bytes_bucket{workflowType="flow",version="2",le="1000"} 1',
        'workflow_input_size_bytes_sum{workflowType="flow",version="2"} 500',
      ]),
    );
  });

  it("[C-HND-09] is served together with the health, and is written to a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "longshore-drop-in-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "metrics.prom");
    writeFileSync(file, "");
    const collector = new CanonicalMetricsCollector({ filePath: file, fileWriteIntervalMs: 5 });
    collector.onPollStarted({ ...at, pollCount: 1 });
    const server = new MetricsServer(collector, 0, { host: "127.0.0.1" });
    await server.start();
    onTestFinished(async () => {
      await server.stop();
      await collector.stop();
    });
    expect(await (await fetch(`${server.url}/metrics`)).text()).toContain('task_poll_total{taskType="t"} 1');
    expect(await (await fetch(`${server.url}/health`)).json()).toMatchObject({ status: "UP" });
    await until(() => readFileSync(file, "utf8").includes('task_poll_total{taskType="t"} 1'));
  });
});

it("isTaskInProgress requires both the status and the time", () => {
  expect(isTaskInProgress({ status: "IN_PROGRESS", callbackAfterSeconds: 0 })).toBe(true);
  expect([{ status: "IN_PROGRESS" }, { status: "COMPLETED", callbackAfterSeconds: 1 }, undefined].some(isTaskInProgress)).toBe(false);
});

it("a TaskContext made by hand keeps what is set", () => {
  const context = new TaskContext({ taskId: "1" });
  context.addLog("a");
  context.setCallbackAfter(5);
  context.setOutput({ b: 1 });
  expect([context.getLogs(), context.getCallbackAfterSeconds(), context.getOutput(), context.getPollCount(), context.getInput()]).toEqual([
    [{ log: "a", taskId: "1", createdTime: expect.any(Number) }],
    5,
    { b: 1 },
    0,
    {},
  ]);
});

it("modules are found by path, without their ending, by name and by URL", () => {
  const folder = mkdtempSync(join(tmpdir(), "longshore-drop-in-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "orders.mjs"), "");
  expect(findModule(join(folder, "orders"))).toBe(join(folder, "orders.mjs"));
  expect(findModule(`file://${folder}/orders.mjs`)).toBe(join(folder, "orders.mjs"));
  expect(findModule("zod")).toMatch(/zod/);
});
