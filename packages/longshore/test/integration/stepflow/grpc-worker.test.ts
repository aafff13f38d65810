// A worker on a gRPC queue, with the test as its orchestrator: the messages of a task from its assignment to its end.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { TerminalError } from "../../../src/core/errors.ts";
import { type Task, task } from "../../../src/core/task.ts";
import { GrpcCode, GrpcError } from "../../../src/net/grpc/status.ts";
import { TaskErrorCode, TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/grpc/worker.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";
import { startWorker } from "../../support/stepflow-worker.ts";
import { deferred, until } from "../../support/until.ts";

const echo = task("echo", (input: unknown) => input, { description: "d", schemas: { input: { type: "object" } } });

async function setup(tasks: readonly Task[] = [echo], options: Parameters<typeof stepflowGrpc>[1] = {}, work: { slots?: number } = {}) {
  const orchestrator = await StepflowOrchestrator.start();
  const on = stepflowGrpc(orchestrator.url, { queue: "python", workerId: "w1", env: {}, ...options });
  return { orchestrator, ...(await startWorker(tasks, on, work)) };
}

/** A handler that waits until the test ends it. */
function gatedTask() {
  const gates: ReturnType<typeof deferred<unknown>>[] = [];
  const reasons: unknown[] = [];
  const gated = task("gated", (_input: unknown, ctx) => {
    const gate = deferred<unknown>();
    gates.push(gate);
    ctx.signal.addEventListener("abort", () => {
      reasons.push((ctx.signal.reason as { code: string }).code);
      gate.reject(ctx.signal.reason);
    });
    return gate.promise;
  });
  return { gated, gates, reasons };
}

const notFound = () => {
  throw new GrpcError(GrpcCode.NOT_FOUND, "task not found");
};
const unavailable = () => {
  throw new GrpcError(GrpcCode.UNAVAILABLE, "recovering");
};

describe("a worker on a gRPC queue", () => {
  it("[S-QUEUE-07, S-QUEUE-13] pulls from its queue, claims, and completes with exactly the reference's bytes", async () => {
    const s = await setup();
    await until(() => s.orchestrator.streams.length === 1);
    const [pull] = s.orchestrator.of("PullTasks");
    expect(pull?.hex).toBe("0a06707974686f6e12027731");
    // The recorded bytes contain the orchestrator's address, which is replaced here.
    const golden =
      "0a02743112440a046563686f12232a210a0f0a076d65737361676512041a0268690a0e0a016e1209110000000000004540180122081a0272312a0273312a0b0a04706174681203612f6222140a0e3132372e302e302e313a37383337120272312801";
    const address = Buffer.from(s.orchestrator.url);
    const context = Buffer.concat([Buffer.from([0x0a, address.length]), address, Buffer.from("12027231", "hex")]);
    const head = golden.slice(0, golden.indexOf("22140a0e"));
    const bytes = Buffer.concat([Buffer.from(head, "hex"), Buffer.from([0x22, context.length]), context, Buffer.from("2801", "hex")]);
    await s.orchestrator.send(bytes);
    const result = await s.orchestrator.result("t1");
    expect(result.response?.output).toEqual({ message: "hi", n: 42 });
    expect(s.orchestrator.of("TaskHeartbeat").map(({ hex }) => hex)).toEqual(["0a027431120277312a027231"]);
    expect(s.orchestrator.calls.map(({ method }) => method)).toEqual(["PullTasks", "TaskHeartbeat", "CompleteTask"]);
  });

  it("reports results and failures with exactly the reference's bytes", async () => {
    const fails = task("fails", () => {
      throw Object.assign(new Error("boom"), { name: "ValueError", stack: undefined });
    });
    const s = await setup([task("ok", () => ({ ok: true })), fails]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "ok" }));
    await s.orchestrator.result("t1");
    expect(s.orchestrator.of("CompleteTask")[0]?.hex).toBe("0a027431120e0a0c2a0a0a080a026f6b1202200122027231");
    s.orchestrator.results.splice(0);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "fails" }));
    await s.orchestrator.result("t1");
    const error = "0a0274311a2a08031204626f6f6d1a200a1e0a0e657863657074696f6e5f74797065120c1a0a56616c75654572726f7222027231";
    expect(s.orchestrator.of("CompleteTask")[1]?.hex).toBe(error);
  });

  it("lists its components with the same bytes as the reference, also while every slot is used", async () => {
    const { gated, gates } = gatedTask();
    const schema = task("echo", (input: unknown) => input, { description: "d", input: z.unknown() });
    const plain = { ...schema, input: undefined, schemas: undefined };
    const s = await setup([plain, gated], {}, { slots: 1 });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    await s.orchestrator.send(s.orchestrator.discovery("discovery-0"));
    const { listComponents } = await s.orchestrator.result("discovery-0");
    expect(listComponents?.components).toEqual([
      { componentId: "echo", description: "d", path: "/echo" },
      { componentId: "gated", path: "/gated" },
    ]);
    expect(s.orchestrator.of("TaskHeartbeat")).toHaveLength(1);
  });

  it("publishes schemas and paths of its components", async () => {
    const input = z.object({ name: z.string() });
    const path = "/core/{*path}";
    const s = await setup([task("greet", () => "hi", { input, output: z.string() }), task("core", () => 1, { path })]);
    await s.orchestrator.send(s.orchestrator.discovery("discovery-0"));
    const [greet, core] = (await s.orchestrator.result("discovery-0")).listComponents?.components ?? [];
    expect(JSON.parse(greet?.inputSchema ?? "")).toMatchObject({ type: "object", properties: { name: { type: "string" } } });
    expect(JSON.parse(greet?.outputSchema ?? "")).toMatchObject({ type: "string" });
    expect(core).toEqual({ componentId: "core", path });
  });

  it("makes at most two calls for a task in addition to the stream, all on one connection", async () => {
    const s = await setup();
    for (let n = 0; n < 50; n++) await s.orchestrator.send(s.orchestrator.task(`t${n}`, { componentId: "echo", input: { n } }));
    await until(() => s.orchestrator.results.length === 50);
    expect(s.orchestrator.calls).toHaveLength(1 + 2 * 50);
    expect(s.orchestrator.connections).toBe(2);
  });

  it("sends its token with every call", async () => {
    const s = await setup([echo], { token: "secret" });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    await s.orchestrator.result("t1");
    expect(s.orchestrator.calls.map(({ metadata }) => metadata.authorization)).toEqual(Array(3).fill("Bearer secret"));
  });

  it("gives the handler its ids, for any name of its component", async () => {
    const { stepflowTask } = await import("../../../src/protocols/stepflow/worker/task-context.ts");
    const where = task(
      "where",
      (_input: unknown, ctx) => {
        const { putBlob, getBlob, submitRun, getRun, evaluate, ...place } = stepflowTask(ctx);
        return { ...place, ids: ctx.ids, key: ctx.idempotencyKey };
      },
      { path: "/where/{*path}" },
    );
    const s = await setup([where]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "/python/where/a/b", attempt: 2 }));
    expect((await s.orchestrator.result("t1")).response?.output).toEqual({
      component: "/python/where/a/b",
      pathParams: { path: "a/b" },
      attempt: 2,
      runId: "r1",
      rootRunId: "r1",
      flowId: "f1",
      stepId: "s1",
      ids: { runId: "r1", stepId: "s1", taskId: "t1", grantId: "t1/2" },
      key: "t1",
    });
    await s.orchestrator.send(s.orchestrator.task("01ARZ.3-7", { componentId: "where", pathParams: { path: "x" } }));
    expect((await s.orchestrator.result("01ARZ.3-7")).response?.output).toMatchObject({
      pathParams: { path: "x" },
      ids: { taskId: "01ARZ.3", grantId: "01ARZ.3-7" },
      key: "01ARZ.3",
    });
  });
});

describe("a claim", () => {
  it.each([
    ["of another worker's task", () => ({ status: TaskStatus.ALREADY_CLAIMED, shouldAbort: true })],
    ["of a task that nobody knows", notFound],
  ])("%s drops it silently", async (_name, beat) => {
    let called = 0;
    const s = await setup([task("echo", () => ++called)]);
    s.orchestrator.answers.beat = ({ taskId }) => (taskId === "t1" ? beat() : { status: TaskStatus.IN_PROGRESS });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    await s.orchestrator.send(s.orchestrator.task("t2", { componentId: "echo" }));
    await s.orchestrator.result("t2");
    expect(called).toBe(1);
    expect(s.orchestrator.results.map(({ taskId }) => taskId)).toEqual(["t2"]);
    expect(s.notices).toEqual([]);
  });

  it("is repeated while its orchestrator recovers, and then dropped", async () => {
    const s = await setup();
    let recovering = true;
    s.orchestrator.answers.beat = () => (recovering ? unavailable() : { status: TaskStatus.IN_PROGRESS });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    await s.pass(() => s.orchestrator.beats.length === 3);
    recovering = false;
    await s.pass(() => s.orchestrator.results.length === 1);
    recovering = true;
    await s.orchestrator.send(s.orchestrator.task("t2", { componentId: "echo" }));
    await s.pass(() => s.worker.status().slots.free === 10 && s.orchestrator.beats.length === 10);
    expect(s.orchestrator.results.map(({ taskId }) => taskId)).toEqual(["t1"]);
    expect(s.notices.map(({ message }) => message.replace(/^.*?: /, ""))).toEqual([
      expect.stringMatching(/^claim fails, trying on: TaskHeartbeat at .* failed with UNAVAILABLE: recovering$/),
      expect.stringMatching(/^claim works again after /),
      expect.stringMatching(/^claim fails, trying on: /),
    ]);
  });

  it("of a task that is cancelled meanwhile ends without a call of the handler", async () => {
    let called = 0;
    const s = await setup([task("echo", () => ++called)]);
    s.orchestrator.answers.beat = () => ({ status: TaskStatus.IN_PROGRESS, shouldAbort: true });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    expect((await s.orchestrator.result("t1")).error?.code).toBe(TaskErrorCode.CANCELLED);
    expect(called).toBe(0);
  });

  it("of a task that runs here already is not made: the running one continues", async () => {
    const { gated, gates } = gatedTask();
    const s = await setup([gated]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated", attempt: 2 }));
    await s.orchestrator.send(s.orchestrator.discovery("d"));
    await s.orchestrator.result("d");
    expect(s.orchestrator.beats).toHaveLength(1);
    gates[0]?.resolve("once");
    expect((await s.orchestrator.result("t1")).response?.output).toBe("once");
    expect(gates).toHaveLength(1);
  });
});

describe("heartbeats", () => {
  it("continue while the handler runs, at the orchestrator's interval, with the newest progress", async () => {
    const { gates, gated } = gatedTask();
    const told = [0.25, "half way", { percent: 75, message: "nearly" }, { odd: true }];
    const talks = task("talks", async (input: unknown, ctx) => {
      ctx.progress(told[0]);
      return gated.handle(input, ctx);
    });
    const s = await setup([talks]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "talks" }, { heartbeatIntervalSecs: 3 }));
    await until(() => gates.length === 1);
    await s.clock.advance(2_999);
    expect(s.orchestrator.beats).toHaveLength(1);
    await s.clock.advance(1);
    await until(() => s.orchestrator.beats.length === 2);
    await s.pass(() => s.orchestrator.beats.length === 3);
    const said = { taskId: "t1", workerId: "w1", runId: "r1" };
    expect(s.orchestrator.beats).toEqual([said, { ...said, progress: 0.25 }, said]);
    gates[0]?.resolve(1);
    await s.orchestrator.result("t1");
  });

  it("vary by up to a fifth, so that tasks that began together do not send heartbeats together", async () => {
    const { gates, gated } = gatedTask();
    const orchestrator = await StepflowOrchestrator.start();
    const drawn = [0, 1];
    const random = () => drawn.shift() ?? 0.5;
    const s = await startWorker([gated], stepflowGrpc(orchestrator.url, { env: {} }), { random });
    await orchestrator.send(orchestrator.task("t1", { componentId: "gated" }));
    await orchestrator.send(orchestrator.task("t2", { componentId: "gated" }));
    await until(() => gates.length === 2);
    await s.clock.advance(799);
    expect(orchestrator.beats).toHaveLength(2);
    await s.clock.advance(1);
    await until(() => orchestrator.beats.length === 3);
    await s.clock.advance(399);
    expect(orchestrator.beats).toHaveLength(3);
    await s.clock.advance(1);
    await until(() => orchestrator.beats.length === 4);
  });

  it("answered with should_abort abort the handler's signal, and the task is reported as cancelled", async () => {
    const { gates, gated, reasons } = gatedTask();
    const s = await setup([gated]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    s.orchestrator.answers.beat = () => ({ status: TaskStatus.IN_PROGRESS, shouldAbort: true });
    await s.pass(() => reasons.length === 1);
    expect(reasons).toEqual(["LONGSHORE_CANCELLED"]);
    expect((await s.orchestrator.result("t1")).error).toMatchObject({ code: TaskErrorCode.CANCELLED });
  });

  it.each([
    ["another worker has it", () => ({ status: TaskStatus.ALREADY_CLAIMED, shouldAbort: true })],
    ["nobody knows it any more", notFound],
  ])("that find out that %s stop the handler, and nothing is reported", async (_name, beat) => {
    const { gates, gated, reasons } = gatedTask();
    const s = await setup([gated]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    s.orchestrator.answers.beat = beat;
    await s.pass(() => s.worker.status().counts.lost === 1);
    expect(reasons).toEqual(["LONGSHORE_LEASE_LOST"]);
    expect(s.orchestrator.of("CompleteTask")).toEqual([]);
    // The task may come again: no heartbeats are sent for the lost one.
    s.orchestrator.answers.beat = () => ({ status: TaskStatus.IN_PROGRESS });
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated", attempt: 2 }));
    await until(() => gates.length === 2);
  });

  it("that get UNAVAILABLE have no effect: the handler continues", async () => {
    const { gates, gated, reasons } = gatedTask();
    const s = await setup([gated]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => gates.length === 1);
    s.orchestrator.answers.beat = unavailable;
    await s.pass(() => s.orchestrator.beats.length === 30);
    expect(reasons).toEqual([]);
    gates[0]?.resolve("done");
    expect((await s.orchestrator.result("t1")).response?.output).toBe("done");
  });
});

describe("the code of a failure", () => {
  const failing = [
    task("throws", () => {
      throw new TypeError("odd");
    }),
    task("final", () => {
      throw new TerminalError("never");
    }),
    task("strict", () => 1, { input: z.object({ n: z.number() }) }),
    task("slow", () => new Promise(() => {}), { timeout: "1s" }),
    task("away", () => {
      throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
    }),
    task("garbled", () => 1n),
  ];

  it.each([
    ["throws", "COMPONENT_FAILED", "odd"],
    ["final", "WORKER_ERROR", "never"],
    ["strict", "INVALID_INPUT", /does not fit the task's schema: n: /],
    ["slow", "TIMEOUT", 'Task "slow" timed out after 1.0 s.'],
    ["away", "RESOURCE_UNAVAILABLE", /ECONNREFUSED/],
    ["garbled", "WORKER_ERROR", /is not JSON/],
    ["nosuch", "COMPONENT_NOT_FOUND", 'The component "nosuch" is not among those of this worker.'],
  ] as const)("of %s is %s, with class and traceback", async (componentId, code, message) => {
    const s = await setup(failing);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId, input: {} }));
    await s.pass(() => s.orchestrator.results.length === 1, 500);
    const { error } = await s.orchestrator.result("t1");
    expect(error?.code).toBe(TaskErrorCode[code]);
    expect(error?.message).toMatch(message);
    expect(error?.data).toMatchObject({ exception_type: expect.any(String), traceback: expect.stringContaining("Error") });
  });
});
