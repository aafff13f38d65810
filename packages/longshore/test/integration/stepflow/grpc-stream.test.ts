// The stream with a worker's tasks: how many tasks it receives, how it is opened again, how it ends.

import { describe, expect, it } from "vitest";
import { type Task, task } from "../../../src/core/task.ts";
import { GrpcCode, GrpcError } from "../../../src/net/grpc/status.ts";
import { TaskErrorCode } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowFromEnvironment } from "../../../src/protocols/stepflow/worker/from-environment.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/grpc/worker.ts";
import type { WorkOptions } from "../../../src/work.ts";
import { startRelay } from "../../support/grpc.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";
import { startWorker } from "../../support/stepflow-worker.ts";
import { deferred, until } from "../../support/until.ts";

const echo = task("echo", (input: unknown) => input);

async function setup(tasks: readonly Task[] = [echo], work: Partial<WorkOptions> = {}) {
  const orchestrator = await StepflowOrchestrator.start();
  const worker = await startWorker(tasks, stepflowGrpc(orchestrator.url, { queue: "python", workerId: "w1", env: {} }), work);
  return { orchestrator, ...worker };
}

function gatedTask() {
  const gates: ReturnType<typeof deferred<unknown>>[] = [];
  const gated = task("gated", (_input: unknown, ctx) => {
    const gate = deferred<unknown>();
    gates.push(gate);
    ctx.signal.addEventListener("abort", () => gate.reject(ctx.signal.reason));
    return gate.promise;
  });
  return { gated, gates };
}

/** A worker with one slot. It runs the task `t1`, and has read `t2`, which waits for the slot. */
async function oneWaits() {
  const { gated, gates } = gatedTask();
  const s = await setup([gated], { slots: 1 });
  let full = 0;
  s.worker.on("slotsFull", () => full++);
  await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
  await s.orchestrator.send(s.orchestrator.task("t2", { componentId: "gated" }));
  await until(() => full === 1 && gates.length === 1);
  return { s, gates };
}

describe("a worker whose slots are taken", () => {
  it("claims no more than it has slots for, and continues as soon as one is free", async () => {
    const { gated, gates } = gatedTask();
    const s = await setup([gated], { slots: 2 });
    for (let n = 0; n < 6; n++) await s.orchestrator.send(s.orchestrator.task(`t${n}`, { componentId: "gated" }));
    await until(() => gates.length === 2);
    for (let n = 2; n <= 6; n++) {
      expect(s.orchestrator.beats.map(({ taskId }) => taskId)).toEqual(
        Array.from({ length: n }, (_, at) => `t${at}`).slice(0, Math.min(n, 6)),
      );
      gates[n - 2]?.resolve(n);
      if (n < 6) await until(() => gates.length === n + 1);
    }
    gates[5]?.resolve(6);
    await until(() => s.orchestrator.results.length === 6);
  });

  it("leaves unread tasks with its orchestrator, except those in the window of the stream", async () => {
    const { gated, gates } = gatedTask();
    const s = await setup([gated], { slots: 1 });
    const input = "x".repeat(10_000);
    let sent = 0;
    const sending = (async () => {
      for (let n = 0; n < 40; n++) {
        await s.orchestrator.send(s.orchestrator.task(`t${n}`, { componentId: "gated", input }));
        sent = n + 1;
      }
    })();
    await until(() => gates.length === 1);
    // No event shows that the rest is not sent, so the test waits until the worker has answered something else.
    for (let n = 0; n < 3; n++) {
      await s.pass(() => s.orchestrator.beats.length >= 2 + n);
    }
    expect(sent).toBeLessThan(12);
    for (let n = 0; n < 40; n++) {
      await until(() => gates.length > n);
      gates[n]?.resolve(n);
    }
    await sending;
    await until(() => s.orchestrator.results.length === 40);
  });

  it("reports that a task waits for a slot", async () => {
    const { s, gates } = await oneWaits();
    gates[0]?.resolve(1);
    await until(() => gates.length === 2);
    gates[1]?.resolve(2);
    await until(() => s.orchestrator.results.length === 2);
  });
});

describe("a stream", () => {
  it("that broke is opened again without a limit of attempts, and its failure is reported once", async () => {
    const s = await setup();
    await until(() => s.orchestrator.streams.length === 1);
    await s.orchestrator.crash();
    const startMs = s.clock.now();
    await s.pass(() => s.clock.now() - startMs > 600_000, 5_000);
    await s.orchestrator.listen();
    await s.pass(() => s.orchestrator.streams.length === 1);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo", input: 1 }));
    await s.orchestrator.result("t1");
    expect(s.notices.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^stepflow 127.0.0.1:\d+ queue python: pull of queue python fails, trying on: PullTasks at .* failed with UNAVAILABLE: /,
      ),
      expect.stringMatching(/^stepflow .*: pull of queue python works again after 10 m /),
    ]);
  });

  it("whose orchestrator has silently disappeared is detected by pings, and opened again", async () => {
    const orchestrator = await StepflowOrchestrator.start();
    const relay = await startRelay(orchestrator.port);
    const s = await startWorker([echo], stepflowGrpc(relay.target, { env: {} }));
    await until(() => orchestrator.streams.length === 1);
    relay.cut();
    await s.pass(() => s.notices.length === 1, 1_000);
    expect(s.notices[0]?.message).toMatch(/failed with UNAVAILABLE: .*not answered a ping within 20000 ms/);
    relay.mend();
    await s.pass(() => orchestrator.streams.length === 2, 1_000);
    await orchestrator.send(orchestrator.task("t1", { componentId: "echo", input: 1 }));
    await orchestrator.result("t1");
  });

  it("to an orchestrator that is not started yet is opened when it starts", async () => {
    const gone = await StepflowOrchestrator.start();
    const { url } = gone;
    await gone.crash();
    const s = await startWorker([echo], stepflowGrpc(url, { env: {} }));
    await until(() => s.notices.length === 1);
    await gone.listen();
    await s.pass(() => gone.streams.length === 1);
  });

  it("that the orchestrator ended normally is opened again", async () => {
    const s = await setup();
    await until(() => s.orchestrator.streams.length === 1);
    s.orchestrator.streams[0]?.sink.end();
    s.orchestrator.streams.splice(0);
    await s.pass(() => s.orchestrator.streams.length === 1);
    expect(s.notices).toEqual([]);
  });

  it("of a queue that does not exist is requested until the queue exists", async () => {
    const s = await setup();
    await until(() => s.orchestrator.streams.length === 1);
    s.orchestrator.streams[0]?.sink.end(new GrpcError(GrpcCode.NOT_FOUND, "queue 'python' not found"));
    s.orchestrator.streams.splice(0);
    await s.pass(() => s.orchestrator.streams.length === 1);
    expect(s.notices[0]?.message).toMatch(/failed with NOT_FOUND: queue 'python' not found$/);
  });

  it("reports the start and the failure of polls", async () => {
    const s = await setup();
    const seen: string[] = [];
    s.worker.on("pollStarted", ({ task: name, worker }) => seen.push(`started ${name} ${worker}`));
    s.worker.on("pollFailed", ({ error }) => seen.push(`failed ${error.message.replace(/ at .*? failed/, " failed")}`));
    await until(() => s.orchestrator.streams.length === 1);
    s.orchestrator.streams[0]?.sink.end(new GrpcError(GrpcCode.UNAUTHENTICATED, "no token"));
    s.orchestrator.streams.splice(0);
    await s.pass(() => s.orchestrator.streams.length === 1);
    expect(seen).toEqual(["failed PullTasks failed with UNAUTHENTICATED: no token", "started * w1"]);
  });
});

describe("a worker that stops", () => {
  it("stops pulling at once, also while it is idle", async () => {
    const s = await setup();
    await until(() => s.orchestrator.streams.length === 1);
    await s.worker.stop();
    await until(() => s.orchestrator.streams.length === 0 && s.orchestrator.connections === 0);
  });

  it("lets its tasks end within the grace period, with heartbeats, and reports the rest so that they are retried at once", async () => {
    const { gated, gates } = gatedTask();
    const s = await setup([gated], { drain: "10s" });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await s.orchestrator.send(s.orchestrator.task("t2", { componentId: "gated" }));
    await until(() => gates.length === 2);
    const stopped = s.worker.stop();
    await until(() => s.orchestrator.streams.length === 0);
    await s.pass(() => s.orchestrator.beats.length >= 6);
    gates[0]?.resolve("in time");
    expect((await s.orchestrator.result("t1")).response?.output).toBe("in time");
    await s.pass(() => s.orchestrator.results.length === 2, 500);
    const { error } = await s.orchestrator.result("t2");
    expect(error).toMatchObject({ code: TaskErrorCode.UNREACHABLE, message: "The worker is shutting down." });
    await stopped;
  });

  it("gives back a task that it has read but not claimed", async () => {
    const { s, gates } = await oneWaits();
    const stopped = s.worker.stop();
    expect((await s.orchestrator.result("t2")).error).toMatchObject({ code: TaskErrorCode.UNREACHABLE });
    gates[0]?.resolve(1);
    await stopped;
    expect(s.orchestrator.beats.map(({ taskId }) => taskId)).not.toContain("t2");
  });
});

describe("the environment", () => {
  it("[S-QUEUE-14, S-QUEUE-15, S-QUEUE-16] of a worker that its orchestrator started has all settings", async () => {
    const orchestrator = await StepflowOrchestrator.start();
    const on = stepflowFromEnvironment({
      STEPFLOW_TRANSPORT: "grpc",
      STEPFLOW_TASKS_URL: orchestrator.url,
      STEPFLOW_QUEUE_NAME: "gpu",
      STEPFLOW_BLOB_URL: orchestrator.url,
    });
    await startWorker([echo], on as NonNullable<typeof on>);
    await until(() => orchestrator.streams.length === 1);
    expect(orchestrator.streams[0]?.request.queueName).toBe("gpu");
    await orchestrator.send(orchestrator.task("t1", { componentId: "echo", input: 1 }));
    expect((await orchestrator.result("t1")).response?.output).toBe(1);
  });

  it("of a manifest sets how many tasks run at once and how long they may take", async () => {
    const { gated, gates } = gatedTask();
    const orchestrator = await StepflowOrchestrator.start();
    const on = stepflowFromEnvironment({
      STEPFLOW_TASKS_URL: `http://${orchestrator.url}`,
      STEPFLOW_MAX_CONCURRENT: "3",
      STEPFLOW_SHUTDOWN_GRACE_SECS: "7",
    });
    const s = await startWorker([gated], on as NonNullable<typeof on>);
    expect(s.worker.status().slots.total).toBe(3);
    await orchestrator.send(orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    const stopped = s.worker.stop();
    const startMs = s.clock.now();
    await s.pass(() => orchestrator.results.length === 1, 500);
    expect(s.clock.now() - startMs).toBeGreaterThanOrEqual(7_000);
    expect(s.clock.now() - startMs).toBeLessThan(9_000);
    await stopped;
  });
});
