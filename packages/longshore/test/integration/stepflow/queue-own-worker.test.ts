// Both halves over queues: our workers take their tasks from queues of our server, over gRPC and over NATS.

import { describe, expect, it, onTestFinished } from "vitest";
import { type Task, task } from "../../../src/core/task.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/grpc/worker.ts";
import { stepflowNats } from "../../../src/protocols/stepflow/worker/nats/worker.ts";
import type { Transport } from "../../../src/runner/transport.ts";
import { type WorkOptions, work } from "../../../src/work.ts";
import { natsMissing, TestNats } from "../../support/nats.ts";
import { dispatch } from "../../support/stepflow-nats.ts";
import { type QueueWorld, queueWorld } from "../../support/stepflow-queue.ts";
import { deferred, until } from "../../support/until.ts";

const echo = task("echo", (input: unknown) => input);
const policy = JSON.stringify({ failures: 0, lost: 3, backoff: { kind: "fixed", delayMs: 0 } });

interface Backend {
  readonly name: "grpc" | "nats";
  readonly skip?: string | undefined;
  /** Creates transports to the queue `python` of this test. */
  open(world: QueueWorld): Promise<(workerId: string) => Transport>;
}

const backends: readonly Backend[] = [
  {
    name: "grpc",
    open:
      async ({ grpc }) =>
      (workerId) =>
        stepflowGrpc(grpc.target, { queue: "python", workerId, env: {} }),
  },
  {
    name: "nats",
    skip: natsMissing,
    async open(world) {
      const nats = await TestNats.start();
      await dispatch(world, nats.url);
      return (workerId) => stepflowNats(nats.url, { stream: "python", workerId, env: {} });
    },
  },
];

describe.each(backends)("our worker on our queue over $name", ({ name, skip, open }) => {
  async function setup(tasks: readonly Task[], options: Partial<WorkOptions> = {}) {
    const queues = ["python", "gpu"].map((queue) => ({ name: queue, backend: name }));
    const world = await queueWorld({ queues });
    const transport = await open(world);
    const start = async (workerId: string) => {
      const worker = await work({ tasks, on: transport(workerId), signals: false, clock: world.clock, logger: false, ...options });
      onTestFinished(async () => {
        const stopped = worker.stop({ force: true });
        let over = false;
        void stopped.then(() => {
          over = true;
        });
        await passing(world, () => over);
      });
      return worker;
    };
    return { ...world, start };
  }

  it("[S-QUEUE-01, S-QUEUE-03] runs tasks by the names that it registered", async (context) => {
    if (skip) context.skip(`needs ${skip}`);
    const s = await setup([echo, task("core", (_input: unknown, ctx) => ctx.native ?? null, { path: "/core/{*path}" })], { slots: 3 });
    await s.start("w1");
    for (let n = 0; n < 20; n++) await s.post(`t${n}`, { given: { n } });
    for (let n = 0; n < 20; n++) await passing(s, async () => (await s.task(`t${n}`)).state === "done");
    expect(JSON.parse((await s.task("t7")).output ?? "")).toEqual({ n: 7 });
    // Over NATS it is unknown which worker responded.
    if (name === "grpc") expect(s.engine.workers.get("w1")?.does).toEqual(["/echo", "/core/{*path}"]);
    await s.post("c", { component: "/core/a/b" });
    await passing(s, async () => (await s.task("c")).state === "done");
    expect(JSON.parse((await s.task("c")).output ?? "")).toMatchObject({ component: "core", pathParams: { path: "a/b" } });
  });

  it("is notified of a cancel while its handler runs", async (context) => {
    if (skip) context.skip(`needs ${skip}`);
    const begun = deferred<AbortSignal>();
    const waits = task("echo", (_input: unknown, ctx) => {
      begun.resolve(ctx.signal);
      return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    });
    const s = await setup([waits]);
    await s.start("w1");
    await s.post("t");
    let signal: AbortSignal | undefined;
    void begun.promise.then((given) => {
      signal = given;
    });
    await passing(s, () => signal !== undefined);
    await s.engine.board.cancel("t");
    await passing(s, async () => (await s.task("t")).state === "cancelled");
    expect(signal?.reason).toMatchObject({ code: "LONGSHORE_CANCELLED" });
  });

  it("uses no slot while a deferred task waits, and gets the deferral's state in the same attempt", async (context) => {
    if (skip) context.skip(`needs ${skip}`);
    const calls: unknown[] = [];
    const asks = task("echo", (input: unknown, ctx) => {
      if (input === "other") return "done meanwhile";
      calls.push({ attempt: ctx.attempt, deferrals: ctx.deferrals, deferred: ctx.deferred ?? null });
      return ctx.deferrals < 2 ? ctx.defer("10s", { asked: ctx.deferrals }) : { path: ctx.native };
    });
    const s = await setup([asks], { slots: 1 });
    await s.start("w1");
    await s.post("r.0", { given: "asks" });
    await passing(s, () => calls.length === 1);
    await s.post("r.1", { given: "other" });
    await passing(s, async () => (await s.task("r.1")).state === "done");
    expect(await s.task("r.0")).toMatchObject({ state: "queued", attempt: 0, deferrals: 1 });
    await passing(s, async () => (await s.task("r.0")).state === "done");
    expect(calls).toEqual([
      { attempt: 1, deferrals: 0, deferred: null },
      { attempt: 1, deferrals: 1, deferred: { asked: 0 } },
      { attempt: 1, deferrals: 2, deferred: { asked: 1 } },
    ]);
    expect((await s.task("r.0")).output).not.toContain("longshore.deferred");
  });

  it("that stops gives its task to another worker at once", async (context) => {
    if (skip) context.skip(`needs ${skip}`);
    const gates: string[] = [];
    const waits = task("echo", (_input: unknown, ctx) => {
      gates.push(`attempt ${ctx.attempt}`);
      if (gates.length > 1) return "by another";
      return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason)));
    });
    const s = await setup([waits], { drain: "1s" });
    const first = await s.start("w1");
    await s.post("t", { policy });
    await passing(s, () => gates.length === 1);
    void first.stop();
    await s.start("w2");
    await passing(s, async () => (await s.task("t")).state === "done");
    expect((await s.task("t")).output).toBe('"by another"');
  });
});

it("[S9-33] an outcome is kept over a restart of our own server, and the handler runs once", async () => {
  const gate = deferred<string>();
  let called = 0;
  const waits = task("echo", () => {
    called++;
    return gate.promise;
  });
  const { temporaryFolder } = await import("../../support/parts.ts");
  const world = await queueWorld({ directory: temporaryFolder() });
  const on = stepflowGrpc(world.grpc.target, { queue: "python", env: {} });
  const worker = await work({ tasks: [waits], on, signals: false, clock: world.clock, logger: false });
  await world.post("t");
  await passing(world, () => called === 1);
  const after = await world.restart();
  gate.resolve("kept");
  await passing(after, async () => (await after.task("t")).state === "done");
  expect((await after.task("t")).output).toBe('"kept"');
  expect(called).toBe(1);
  const stopped = worker.stop({ force: true });
  let over = false;
  void stopped.then(() => {
    over = true;
  });
  await passing(after, () => over);
  await until(() => over);
});

/** Lets time pass in small steps until the condition is true. */
async function passing({ clock }: QueueWorld, condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await clock.advance(20);
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
