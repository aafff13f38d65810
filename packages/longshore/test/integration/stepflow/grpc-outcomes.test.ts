// How outcomes of a queue's tasks reach their orchestrator: over restarts, when the run has moved, and when the orchestrator no longer needs
// them.

import { describe, expect, it } from "vitest";
import { type Task, task } from "../../../src/core/task.ts";
import { GrpcCode, GrpcError } from "../../../src/net/grpc/status.ts";
import { TaskErrorCode, TaskStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/grpc/worker.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";
import { startWorker } from "../../support/stepflow-worker.ts";
import { deferred, until } from "../../support/until.ts";

const echo = task("echo", (input: unknown) => input);

async function setup(tasks: readonly Task[] = [echo], options: Parameters<typeof stepflowGrpc>[1] = {}) {
  const orchestrator = await StepflowOrchestrator.start();
  const worker = await startWorker(tasks, stepflowGrpc(orchestrator.url, { workerId: "w1", env: {}, ...options }));
  return { orchestrator, ...worker };
}

const refuse = (code: GrpcCode, message = "no") => {
  throw new GrpcError(code, message);
};

describe("an outcome", () => {
  it("[S9-33] is reported again for two minutes while its orchestrator is down, and the handler runs once", async () => {
    let called = 0;
    const gate = deferred<void>();
    const once = task("once", async () => {
      called++;
      await gate.promise;
      return { n: called };
    });
    const s = await setup([once]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "once" }));
    await until(() => called === 1);
    await s.orchestrator.crash();
    gate.resolve();
    const startMs = s.clock.now();
    await s.pass(() => s.clock.now() - startMs > 90_000, 500);
    await s.orchestrator.listen();
    await s.pass(() => s.orchestrator.results.length === 1, 200);
    expect(s.orchestrator.results).toMatchObject([{ taskId: "t1", runId: "r1", response: { output: { n: 1 } } }]);
    expect(called).toBe(1);
    await until(() => s.worker.status().counts.done === 1);
  });

  it("is reported again while its run is being recovered, and heartbeats continue", async () => {
    const s = await setup();
    const untilMs = s.clock.now() + 60_000;
    s.orchestrator.answers.complete = () => (s.clock.now() < untilMs ? refuse(GrpcCode.UNAVAILABLE) : undefined);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo", input: 1 }));
    await s.pass(() => s.orchestrator.results.length === 1, 200);
    expect(s.orchestrator.beats.length).toBeGreaterThan(30);
    await until(() => s.worker.status().counts.done === 1);
  });

  it("frees its slot after two minutes", async () => {
    const s = await setup();
    s.orchestrator.answers.complete = () => refuse(GrpcCode.UNAVAILABLE);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    const startMs = s.clock.now();
    await s.pass(() => s.worker.status().counts.lost === 1, 500);
    expect(s.clock.now() - startMs).toBeGreaterThanOrEqual(120_000);
    expect(s.clock.now() - startMs).toBeLessThan(130_000);
    expect(s.worker.status().slots.free).toBe(10);
  });

  it("is dropped when its orchestrator does not know the task; after a report without a response it counts as reported", async () => {
    const s = await setup();
    s.orchestrator.answers.complete = () => refuse(GrpcCode.NOT_FOUND);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    await until(() => s.worker.status().counts.lost === 1);
    expect(s.orchestrator.of("CompleteTask")).toHaveLength(1);
    let tries = 0;
    s.orchestrator.answers.complete = () => refuse(++tries === 1 ? GrpcCode.UNAVAILABLE : GrpcCode.NOT_FOUND);
    await s.orchestrator.send(s.orchestrator.task("t2", { componentId: "echo" }));
    await s.pass(() => s.worker.status().counts.done === 1);
    expect(s.worker.status().counts.lost).toBe(1);
  });

  it("that will never be accepted is reported as a failure instead", async () => {
    const s = await setup();
    s.orchestrator.answers.complete = ({ response }) =>
      response === undefined ? undefined : refuse(GrpcCode.INVALID_ARGUMENT, "bad output");
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "echo" }));
    const { error } = await s.orchestrator.result("t1");
    expect(error?.code).toBe(TaskErrorCode.WORKER_ERROR);
    expect(error?.message).toMatch(/^The result could not be reported: CompleteTask at .* failed with INVALID_ARGUMENT: bad output$/);
  });

  it.each([GrpcCode.RESOURCE_EXHAUSTED, GrpcCode.OUT_OF_RANGE])(
    "that is refused with %i is reported as a failure when it is large, and repeated when it is small",
    async (code) => {
      const large = "x".repeat(4 * 1024 * 1024);
      const s = await setup([task("large", () => large), echo]);
      const refused = new Set<string>();
      s.orchestrator.answers.complete = ({ taskId, response }) => {
        if (response === undefined || (taskId === "small" && refused.has(taskId))) return;
        refused.add(taskId);
        refuse(code, "message larger than max");
      };
      await s.orchestrator.send(s.orchestrator.task("large", { componentId: "large" }));
      expect((await s.orchestrator.result("large")).error?.code).toBe(TaskErrorCode.WORKER_ERROR);
      await s.orchestrator.send(s.orchestrator.task("small", { componentId: "echo", input: 1 }));
      await s.pass(() => s.orchestrator.results.length === 2);
      expect((await s.orchestrator.result("small")).response?.output).toBe(1);
    },
  );
});

describe("a run that has moved to another orchestrator", () => {
  async function moved() {
    const other = await StepflowOrchestrator.start();
    const gate = deferred<void>();
    let stopped = false;
    const gated = task("gated", async (_input: unknown, ctx) => {
      ctx.signal.addEventListener("abort", () => {
        stopped = true;
      });
      await gate.promise;
      return "done";
    });
    const s = await setup([gated]);
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "gated" }));
    await until(() => s.orchestrator.beats.length === 1);
    return { ...s, other, gate, stopped: () => stopped };
  }

  it("is located by an orchestrator that still responds: heartbeats claim its task at the new one, and the outcome is sent to it", async () => {
    const s = await moved();
    s.orchestrator.answers.beat = () => refuse(GrpcCode.NOT_FOUND);
    s.orchestrator.answers.complete = () => refuse(GrpcCode.NOT_FOUND);
    s.orchestrator.answers.locate = () => ({ orchestratorServiceUrl: `http://${s.other.url}/` });
    await s.pass(() => s.other.beats.length === 2);
    expect(s.other.beats[0]).toEqual({ taskId: "t1", workerId: "w1", runId: "r1" });
    expect(s.orchestrator.of("GetOrchestratorForRun").map(({ request }) => request)).toEqual([{ runId: "r1" }]);
    s.gate.resolve();
    expect((await s.other.result("t1")).response?.output).toBe("done");
    expect(s.stopped()).toBe(false);
    expect(s.other.connections).toBe(1);
  });

  it("is located when only its outcome is left to report", async () => {
    const s = await moved();
    s.orchestrator.answers.complete = () => refuse(GrpcCode.UNAVAILABLE);
    s.orchestrator.answers.locate = () => ({ orchestratorServiceUrl: s.other.url });
    s.gate.resolve();
    expect((await s.other.result("t1")).response?.output).toBe("done");
  });

  it("is not searched for at its old place, because the response is final", async () => {
    const s = await moved();
    s.orchestrator.answers.locate = () => ({ orchestratorServiceUrl: `http://${s.orchestrator.url.toUpperCase()}` });
    s.orchestrator.answers.beat = () => refuse(GrpcCode.NOT_FOUND);
    await s.pass(() => s.worker.status().counts.lost === 1 || s.stopped());
    expect(s.stopped()).toBe(true);
    s.gate.resolve();
  });

  it("is located at most once a second, for any number of its tasks", async () => {
    const gates: ReturnType<typeof deferred<void>>[] = [];
    const gated = task("gated", () => {
      const gate = deferred<void>();
      gates.push(gate);
      return gate.promise;
    });
    const s = await setup([gated]);
    for (let n = 0; n < 5; n++) await s.orchestrator.send(s.orchestrator.task(`t${n}`, { componentId: "gated" }));
    await until(() => gates.length === 5);
    s.orchestrator.answers.beat = () => refuse(GrpcCode.UNAVAILABLE);
    const startMs = s.clock.now();
    await s.pass(() => s.clock.now() - startMs >= 5_000);
    expect(s.orchestrator.of("GetOrchestratorForRun").length).toBeLessThanOrEqual(6);
    for (const gate of gates) gate.resolve();
  });
});

it("[S-QUEUE-21] tasks of several orchestrators are reported to their own, over one connection to each", async () => {
  const others = await Promise.all([StepflowOrchestrator.start(), StepflowOrchestrator.start()]);
  const s = await setup();
  for (let n = 0; n < 6; n++) {
    const owner = others[n % 2] as StepflowOrchestrator;
    await s.orchestrator.send(owner.task(`t${n}`, { componentId: "echo", input: n }));
  }
  await until(() => others.every(({ results }) => results.length === 3));
  expect(others.map(({ results }) => results.map(({ response }) => response?.output).sort())).toEqual([
    [0, 2, 4],
    [1, 3, 5],
  ]);
  expect(others.map(({ connections }) => connections)).toEqual([1, 1]);
  expect(s.orchestrator.results).toEqual([]);
});

it("a task that does not name its owner belongs to the orchestrator that it was pulled from", async () => {
  const s = await setup();
  await s.orchestrator.send({ taskId: "t1", execute: { componentId: "echo", input: 5 } });
  expect(await s.orchestrator.result("t1")).toEqual({ taskId: "t1", response: { output: 5 } });
  expect(s.orchestrator.beats).toEqual([{ taskId: "t1", workerId: "w1" }]);
  expect(TaskStatus.IN_PROGRESS).toBe(1);
});
