import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { ConductorStub } from "../../../../../test/support/conductor-stub.ts";
import { deferred, until } from "../../../../../test/support/until.ts";
import {
  type Client,
  type ConductorWorker,
  clearWorkerRegistry,
  createConductorClient,
  createMetricsCollector,
  getRegisteredWorker,
  getRegisteredWorkers,
  getTaskContext,
  getWorkerCount,
  type Task,
  TaskHandler,
  type TaskHandlerConfig,
  TaskManager,
  type TaskUpdateFailure,
  worker,
} from "./index.ts";
import { noopLogger } from "./logger.ts";

// The list of decorated workers is shared by the whole process, so the tests of this file share it, too.
beforeEach(() => clearWorkerRegistry());

async function setup(config: Partial<TaskHandlerConfig> = {}) {
  const stub = await ConductorStub.start();
  const client = await createConductorClient({ serverUrl: `${stub.url}/api` });
  const handler = new TaskHandler({ client, logger: noopLogger, outbox: false, ...config });
  onTestFinished(async () => {
    await handler.stopWorkers();
    await stub.close();
  });
  return { stub, client, handler };
}

const echo = (taskDefName: string, more: Partial<ConductorWorker> = {}): ConductorWorker => ({
  taskDefName,
  execute: async (task) => ({ status: "COMPLETED", outputData: { got: task.inputData, domain: more.domain ?? "none" } }),
  ...more,
});

describe("a TaskHandler", () => {
  it("[C-HND-03] starts once, stops, and may be started again", async () => {
    const { stub, handler } = await setup({ workers: [echo("again")] });
    await Promise.all([handler.startWorkers(), handler.startWorkers()]);
    expect([handler.running, handler.workerCount, handler.runningWorkerCount]).toEqual([true, 1, 1]);
    await handler.stopWorkers();
    await handler.stopWorkers();
    expect([handler.running, handler.isHealthy(), handler.runningWorkerCount]).toEqual([false, false, 0]);
    await handler.startWorkers();
    stub.enqueue("again", { inputData: { n: 1 } });
    await until(() => stub.results.length === 1);
    expect(stub.results[0]?.outputData).toEqual({ got: { n: 1 }, domain: "none" });
  });

  it("waits for running tasks when it stops, and reports them", async () => {
    const gate = deferred<void>();
    const started = deferred<void>();
    const slow: ConductorWorker = {
      taskDefName: "slow",
      execute: async () => {
        started.resolve();
        await gate.promise;
        return { status: "COMPLETED", outputData: {} };
      },
    };
    const { stub, handler } = await setup({ workers: [slow] });
    await handler.startWorkers();
    stub.enqueue("slow");
    await started.promise;
    const stopping = handler.stopWorkers();
    gate.resolve();
    await stopping;
    expect(stub.results).toMatchObject([{ status: "COMPLETED" }]);
  });

  it("[C-HND-07, C-HND-08] reports for each worker whether it polls, its id, and how often it was restarted", async () => {
    const { handler } = await setup({ workers: [echo("told", { domain: "east" })] });
    expect(handler.getWorkerStatus()).toMatchObject([{ taskDefName: "told", polling: false }]);
    await handler.startWorkers();
    expect(handler.isHealthy()).toBe(true);
    expect(handler.getWorkerStatus()).toEqual([
      { taskDefName: "told", domain: "east", polling: true, paused: false, workerId: expect.any(String), restartCount: 0 },
    ]);
  });

  it("[C-DOM-01] works for one name in several domains", async () => {
    const { stub, handler } = await setup({ workers: [echo("same"), echo("same", { domain: "east" })] });
    await handler.startWorkers();
    const east = stub.enqueue("same", {}, "east");
    const none = stub.enqueue("same");
    await until(() => stub.results.length === 2);
    const of = ({ taskId }: { taskId: string }) => stub.results.find((result) => result.taskId === taskId)?.outputData?.domain;
    expect([of(east), of(none)]).toEqual(["east", "none"]);
  });

  it("[C-HND-05] runs listed workers, and decorated workers only when it is configured to scan for them", async () => {
    worker({ taskDefName: "declared" })(async () => 1);
    const { handler } = await setup({ workers: [echo("listed")] });
    expect(handler.getWorkerStatus().map(({ taskDefName }) => taskDefName)).toEqual(["declared", "listed"]);
    const { handler: other } = await setup({ workers: [echo("listed")], scanForDecorated: false });
    expect(other.workerCount).toBe(1);
  });

  it("[C-CFG-01] prefers the environment to the code, also for workers without a decorator", async () => {
    vi.stubEnv("CONDUCTOR_WORKER_FROM_ENV_DOMAIN", "west");
    onTestFinished(() => void vi.unstubAllEnvs());
    const { stub, handler } = await setup({ workers: [echo("from_env")] });
    await handler.startWorkers();
    stub.enqueue("from_env", {}, "west");
    await until(() => stub.results.length === 1);
  });

  it("[C-LEASE-01] sends heartbeats only for workers that request them", async () => {
    const gate = deferred<void>();
    const wait = (taskDefName: string, leaseExtendEnabled?: boolean): ConductorWorker => ({
      taskDefName,
      execute: () => gate.promise,
      ...(leaseExtendEnabled === undefined ? {} : { leaseExtendEnabled }),
    });
    const { stub, handler } = await setup({ workers: [wait("unasked"), wait("asked", true)] });
    await handler.startWorkers();
    stub.enqueue("unasked", { responseTimeoutSeconds: 2 });
    const asked = stub.enqueue("asked", { responseTimeoutSeconds: 2 });
    await until(() => stub.heartbeats.length === 2);
    expect(new Set(stub.heartbeats.map(({ body }) => (body as { taskId: string }).taskId))).toEqual(new Set([asked.taskId]));
    gate.resolve();
  });

  it("[C-EXEC-07] accepts any value as the output of a completed task", async () => {
    const values: unknown[] = [undefined, null, 5, "text", [1], { a: 1 }, { status: "shipped" }];
    const { stub, handler } = await setup({ workers: [{ taskDefName: "any", execute: (task) => values[Number(task.inputData?.at)] }] });
    await handler.startWorkers();
    values.forEach((_, at) => void stub.enqueue("any", { inputData: { at } }));
    await until(() => stub.results.length === values.length);
    expect(stub.results.map(({ status }) => status)).toEqual(values.map(() => "COMPLETED"));
    const outputs = new Map(
      stub.results.map(({ taskId, outputData }) => [
        (stub.tasks.get(taskId) as unknown as { inputData: { at: number } }).inputData.at,
        outputData,
      ]),
    );
    expect(values.map((_, at) => outputs.get(at))).toEqual([
      { result: null },
      { result: null },
      { result: 5 },
      { result: "text" },
      { result: [1] },
      { a: 1 },
      { status: "shipped" },
    ]);
  });

  it("[C-EXEC-05] sends a wire result with all of its fields", async () => {
    const result = {
      status: "FAILED" as const,
      reasonForIncompletion: "no stock",
      outputData: { left: 0 },
      logs: [{ log: "looked", createdTime: 5 }],
      externalOutputPayloadStoragePath: "s3/key",
      subWorkflowId: "sub",
    };
    const { stub, handler } = await setup({ workers: [{ taskDefName: "whole", execute: () => result }] });
    await handler.startWorkers();
    stub.enqueue("whole");
    await until(() => stub.results.length === 1);
    expect(stub.results[0]).toMatchObject({ ...result, logs: [{ log: "looked", createdTime: 5 }] });
  });

  it("[C-ERR-03] recognises the SDK's own NonRetryableException by its name", async () => {
    class NonRetryableException extends Error {
      override name = "NonRetryableException";
    }
    const execute = async () => {
      throw new NonRetryableException("not here");
    };
    const { stub, handler } = await setup({ workers: [{ taskDefName: "foreign", execute }] });
    await handler.startWorkers();
    stub.enqueue("foreign");
    await until(() => stub.results.length === 1);
    expect(stub.results[0]).toMatchObject({ status: "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion: "not here" });
  });

  it("[C-HND-06, C-EVT-07, C-EVT-08] notifies every listener, also about a result that could not be reported", async () => {
    const failures: TaskUpdateFailure[] = [];
    const polls: string[] = [];
    const collector = createMetricsCollector();
    const { stub, handler } = await setup({
      workers: [echo("refused")],
      eventListeners: [
        collector,
        { onTaskUpdateFailure: (event) => void failures.push(event) },
        { onPollStarted: ({ workerId, pollCount, taskType }) => void polls.push(`${taskType} ${pollCount} ${workerId !== ""}`) },
      ],
    });
    const refused = { status: 400, body: '{"status":400,"message":"no"}', headers: { "content-type": "application/json" } };
    stub.misbehave(/^POST \/api\/tasks/, refused);
    await handler.startWorkers();
    const { taskId, workflowInstanceId } = stub.enqueue("refused");
    await until(() => failures.length === 1);
    expect(failures[0]).toMatchObject({
      taskType: "refused",
      taskId,
      workflowInstanceId,
      timestamp: expect.any(Date),
      cause: expect.any(Error),
      taskResult: { taskId, workflowInstanceId, status: "COMPLETED", outputData: { got: {}, domain: "none" } },
    });
    expect(polls[0]).toBe("refused 1 true");
    await handler.stopWorkers();
    expect(collector.toPrometheusText()).toContain('task_update_failed_total{taskType="refused"} 1');
    expect(collector.toPrometheusText()).toMatch(/http_api_client_request_seconds_count\{method="GET",uri="[^"]*",status="200"\} \d/);
    expect(collector.toPrometheusText()).toContain('active_workers{taskType="refused"} 0');
  });

  it("accepts a client of the SDK itself instead of an address", async () => {
    const { stub, handler: unused } = await setup();
    expect(unused.workerCount).toBe(0);
    const foreign: Client = { getConfig: () => ({ baseUrl: stub.url }) };
    const handler = new TaskHandler({ client: foreign, logger: noopLogger, outbox: false, workers: [echo("foreign-client")] });
    onTestFinished(() => handler.stopWorkers());
    await handler.startWorkers();
    stub.enqueue("foreign-client");
    await until(() => stub.results.length === 1);
  });

  it("names a missing module, and where it looked for it", async () => {
    const { handler } = await setup({ importModules: ["./no/such/module"] });
    await expect(handler.startWorkers()).rejects.toThrow(/importModules names \.\/no\/such\/module, which was not found from /);
  });
});

describe("the list of decorated workers", () => {
  it("[C-HND-01, C-HND-10] has one worker for each name and domain: the last one", async () => {
    const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    onTestFinished(() => warned.mockRestore());
    const first = worker({ taskDefName: "a" })((_task: Task) => 1);
    worker({ taskDefName: "a", domain: "east" })(() => 2);
    worker({ taskDefName: "a", concurrency: 5 })(() => 3);
    expect(getWorkerCount()).toBe(2);
    expect(getRegisteredWorkers().map(({ domain }) => domain)).toEqual([undefined, "east"]);
    expect(getRegisteredWorker("a")).toMatchObject({ taskDefName: "a", concurrency: 5 });
    expect(warned).toHaveBeenCalledExactlyOnceWith("A second worker for a replaces the first.", "LongshoreWarning");
    expect(first({ inputData: {} } as Task)).toBe(1);
  });

  it("calls a method with the newest instance of its class as `this`", async () => {
    class Counter {
      by = 1;
      count(task: Task) {
        return Number(task.inputData?.from) + this.by;
      }
    }
    const initializers: ((this: unknown) => void)[] = [];
    worker({ taskDefName: "count" })(Counter.prototype.count, {
      kind: "method",
      name: "count",
      addInitializer: (initializer) => void initializers.push(initializer),
    });
    const instance = new Counter();
    instance.by = 10;
    for (const initializer of initializers) initializer.call(instance);
    expect(getRegisteredWorker("count")?.executeFunction({ inputData: { from: 1 } })).toBe(11);
  });
});

describe("a TaskManager", () => {
  it("[C-HND-10] refuses two workers of one name, and an empty list", async () => {
    const client = await createConductorClient({});
    expect(() => new TaskManager(client, [echo("twice"), echo("twice")], { logger: noopLogger }).startPolling()).toThrow(
      "Two workers are for twice",
    );
    expect(() => new TaskManager(client, []).startPolling()).toThrow("There are no workers");
  });
});

describe("getTaskContext", () => {
  it("[C-CTX-01, C-CTX-02, C-CTX-03] works inside a handler only, and has all data of the task", async () => {
    expect(getTaskContext()).toBeUndefined();
    const seen: unknown[] = [];
    const execute = async () => {
      await Promise.resolve();
      const context = getTaskContext();
      context?.addLog("one");
      context?.setOutput({ kept: 1, taken: 1 });
      seen.push([
        context?.getTaskId(),
        context?.getWorkflowInstanceId(),
        context?.getRetryCount(),
        context?.getPollCount(),
        context?.getInput(),
        context?.getTaskDefName(),
        context?.getWorkflowTaskType(),
        context?.getLogs().map(({ log }) => log),
        context?.getOutput(),
        context?.signal?.aborted,
      ]);
      return { taken: 2 };
    };
    const { stub, handler } = await setup({ workers: [{ taskDefName: "context", execute }] });
    await handler.startWorkers();
    stub.enqueue("context", {
      taskId: "t1",
      workflowInstanceId: "w1",
      retryCount: 2,
      inputData: { a: 1 },
      workflowTask: { type: "SIMPLE" },
    });
    await until(() => stub.results.length === 1);
    expect(seen).toEqual([["t1", "w1", 2, 1, { a: 1 }, "context", "SIMPLE", ["one"], { kept: 1, taken: 1 }, false]]);
    expect(stub.results[0]).toMatchObject({ outputData: { kept: 1, taken: 2 }, logs: [{ log: "one", taskId: "t1" }] });
  });
});
