// Handlers in separate threads and processes, with the built package: real threads, real crashes. The tests measure no time: a computing
// handler continues until the test has checked everything.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Task, WorkOptions } from "../../src/index.ts";
import { longshore, testing } from "../support/built.ts";
import { temporaryFolder } from "../support/cli.ts";
import { untilElsewhere as until } from "../support/until.ts";

const { task, work } = longshore;

/** The task module of most tests. `spin` computes without a pause until the file in its input exists. */
const tasksModule = `
import { existsSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { currentContext, task, TerminalError } from "longshore";

export const where = task("where", () => ({ pid: process.pid, threadId }));
export const spin = task("spin", ({ file }, ctx) => {
  ctx.log("spinning");
  while (!existsSync(file)) {}
  return { threadId };
});
export const obedient = task("obedient", (input, ctx) => {
  ctx.log("spinning");
  while (!ctx.signal.aborted) {}
  throw ctx.signal.reason;
});
export const deaf = task("deaf", (input, ctx) => {
  ctx.log("spinning");
  for (;;) {}
});
export const context = task("context", async (input, ctx) => {
  ctx.log("a line");
  ctx.log({ fields: 1 }, "stderr");
  ctx.progress({ half: true });
  ctx.amend("later", 5);
  const answer = await ctx.ask("what", { n: 1 });
  await ctx.heartbeat();
  const id = await ctx.blobs.put("bytes");
  const blob = Buffer.from(await ctx.blobs.get(id)).toString();
  const { attempt, ids, idempotencyKey, deferrals, deferred, native, upstream, task } = ctx;
  return { same: currentContext() === ctx, blob, answer, attempt, ids, idempotencyKey, deferrals, deferred, native, upstream, task };
});
export const stream = task("stream", async (input, ctx) => {
  const seen = [];
  for await (const { uid, value } of ctx.parts("numbers")) {
    seen.push(uid);
    void ctx.emit(value * 2, { uid });
    if (value === 3) break;
  }
  await ctx.emit("last");
  const refused = input.careless ? await ctx.emit(1, { uid: "" }).catch((error) => error.code) : "none";
  const own = new AbortController();
  own.abort(new Error("enough"));
  const ended = await ctx.parts("numbers", { signal: own.signal })[Symbol.asyncIterator]().next().catch((error) => error.message);
  return { seen, refused, ended };
});
export const later = task("later", (input, ctx) => ctx.defer("5m", { kept: 1 }));
export const fails = task("fails", ({ how }) => {
  if (how === "final") throw new TerminalError("never", { cause: new Error("for a reason") });
  if (how === "type") throw new TypeError("odd");
  if (how === "text") throw "a text";
  return how === "bigint" ? 1n : { toJSON: () => "made plain" };
});
export const crash = task("crash", async ({ how }) => {
  if (how === "exit") process.exit(7);
  if (how === "kill") process.kill(process.pid, "SIGKILL");
  if (how === "uncaught") setTimeout(() => { throw new RangeError("nobody caught this"); });
  const kept = [];
  while (how === "memory") kept.push(new Array(100_000).fill(kept.length));
  await new Promise((resolve) => setTimeout(resolve, 60_000));
});
const schema = (what) => ({ "~standard": { version: 1, vendor: "test", validate: (value) =>
  typeof value?.n === "number" ? { value: { n: value.n, seen: what } } : { issues: [{ message: "expected a number", path: ["n"] }] } } });
export const checked = task("checked", (input) => (input.seen === "input" ? input : {}), { input: schema("input"), output: schema("output") });
export const async1 = task("async1", async () => ({ threadId }));
`;

function moduleWith(text = tasksModule, name = "tasks.mjs") {
  const folder = temporaryFolder();
  writeFileSync(join(folder, name), text);
  return { folder, module: join(folder, name) };
}

async function setup(options: Partial<WorkOptions> = {}, text?: string) {
  const { folder, module } = moduleWith(text);
  const tasks = Object.values((await import(module)) as Record<string, Task>);
  const loop = new testing.Loopback();
  const lines: string[] = [];
  const worker = await work({
    tasks,
    on: loop,
    signals: false,
    isolate: "thread",
    module,
    logger: ({ message }) => void lines.push(message),
    ...options,
  });
  onTestFinished(() => worker.stop({ force: true }));
  return { folder, module, loop, worker, lines };
}

const spinning = (loop: InstanceType<typeof testing.Loopback>, count = 1) =>
  until(() => loop.logs.filter(({ text }) => text === "spinning\n").length === count);

describe("a handler in a thread", () => {
  it("[C-ARCH-12] runs in this process in another thread, one call at a time in each, and threads are reused", async () => {
    const { loop, worker } = await setup({ slots: 3 });
    const first = await loop.run("where");
    expect(first).toMatchObject({ kind: "done", output: { pid: process.pid, threadId: expect.any(Number) } });
    const again = await loop.run("where");
    expect(again).toEqual(first);
    expect(worker.status().counts.done).toBe(2);
  });

  it("has the whole context, whose calls reach the orchestrator", async () => {
    const { loop } = await setup();
    const amended: unknown[] = [];
    let beats = 0;
    const kept = new Map<string, Uint8Array>();
    const outcome = await loop.run(
      "context",
      {},
      {
        attempt: 3,
        deferrals: 2,
        deferred: { kept: 1 },
        native: { polls: 4 },
        amend: (name, value) => void amended.push([name, value]),
        ask: async (name, value) => ({ name, value }),
        hold: { termMs: 60_000, everyMs: 60_000 },
        beat: async () => {
          beats++;
          return { verdict: "ok" };
        },
        blobs: {
          put: async (bytes) => {
            kept.set("id", Buffer.from(bytes));
            return "id";
          },
          get: async (id) => kept.get(id) as Uint8Array,
        },
      },
    );
    const ids = { runId: "run", stepId: "context", taskId: "context-0", grantId: "context-0-grant" };
    const context = { attempt: 3, ids, idempotencyKey: "context-0", deferrals: 2, deferred: { kept: 1 }, native: { polls: 4 } };
    const answer = { name: "what", value: { n: 1 } };
    expect(outcome).toEqual({ kind: "done", output: { ...context, same: true, blob: "bytes", answer, upstream: {}, task: "context" } });
    expect(loop.logs.map(({ text, stream }) => [text, stream])).toEqual([
      ["a line\n", "stdout"],
      ['{"fields":1}\n', "stderr"],
    ]);
    expect(loop.progress).toEqual([{ half: true }]);
    expect(amended).toEqual([["later", 5]]);
    expect(beats).toBe(1);
  });

  it("emits parts and reads those of other steps", async () => {
    const { loop } = await setup();
    const numbers = [1, 2, 3, 4].map((value) => ({ uid: `n${value}`, value }));
    const outcome = await loop.run("stream", {}, { parts: { numbers } });
    expect(outcome).toEqual({ kind: "done", output: { seen: ["n1", "n2", "n3"], refused: "none", ended: "enough" } });
    expect(loop.emitted).toEqual([
      { uid: "n1", value: 2 },
      { uid: "n2", value: 4 },
      { uid: "n3", value: 6 },
      { uid: "4", value: "last" },
    ]);
    // A refused part fails the task, also in a thread.
    const refused = await loop.run("stream", { careless: true }, { parts: { numbers } });
    expect(refused).toMatchObject({ kind: "failed", error: { code: "LONGSHORE_BAD_INPUT" } });
  });

  it("ends in the same ways as elsewhere: value, deferral, failure, final failure, a value that is not JSON", async () => {
    const { loop } = await setup();
    expect(await loop.run("later")).toEqual({ kind: "deferred", delayMs: 300_000, output: { kept: 1 } });
    expect(await loop.run("fails", { how: "plain" })).toEqual({ kind: "done", output: "made plain" });
    expect(await loop.run("fails", { how: "type" })).toMatchObject({
      kind: "failed",
      retryable: true,
      error: { name: "TypeError", message: "odd" },
    });
    const final = await loop.run("fails", { how: "final" });
    expect(final).toMatchObject({ kind: "failed", retryable: false, error: { message: "never\ncaused by: for a reason" } });
    expect(final.kind === "failed" && final.error.stack).toContain("tasks.mjs");
    expect(await loop.run("fails", { how: "text" })).toMatchObject({ kind: "failed", retryable: true, error: { message: "a text" } });
    expect(await loop.run("fails", { how: "bigint" })).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { code: "LONGSHORE_BAD_OUTPUT" },
    });
  });

  it("has its input and its result checked by the task's schemas, once each", async () => {
    const { loop } = await setup();
    expect(await loop.run("checked", { n: 1 })).toEqual({ kind: "done", output: { n: 1, seen: "output" } });
    expect(await loop.run("checked", { n: "one" })).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { code: "LONGSHORE_BAD_INPUT", message: expect.stringContaining("n: expected a number") },
    });
  });

  it("that computes does not delay polls, heartbeats and other handlers, also when there are ten", async () => {
    const { folder, loop, worker } = await setup({ slots: 12 });
    const file = join(folder, "go");
    const beats = new Map<number, number>();
    const beaten = (at: number) => ({
      hold: { termMs: 60_000, everyMs: 50 },
      beat: async () => {
        beats.set(at, (beats.get(at) ?? 0) + 1);
        return { verdict: "ok" as const };
      },
    });
    const spins = Array.from({ length: 10 }, (_, at) => loop.run("spin", { file }, beaten(at)));
    await spinning(loop, 10);
    for (let count = 0; count < 100; count++) expect(await loop.run("async1")).toMatchObject({ kind: "done" });
    await until(() => beats.size === 10 && [...beats.values()].every((count) => count >= 5));
    // A poll still finds the free slots.
    expect(loop.host.slots.free).toBe(2);
    expect(worker.status().running).toHaveLength(10);
    writeFileSync(file, "");
    const threads = (await Promise.all(spins)).map((outcome) => (outcome.kind === "done" ? JSON.stringify(outcome.output) : "failed"));
    expect(new Set(threads).size).toBe(10);
    expect(threads).not.toContain("failed");
  });

  it("that computes sees its abort when it checks its signal", async () => {
    const { loop } = await setup();
    let stop = () => {};
    const run = loop.run(
      "obedient",
      {},
      {
        begin: (control) => {
          stop = () => control.stop(new longshore.LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
        },
      },
    );
    await spinning(loop);
    stop();
    expect(await run).toMatchObject({ kind: "failed", retryable: false, error: { code: "LONGSHORE_CANCELLED" } });
  });

  it("that never checks its signal is ended with its thread after the grace period, and the next call gets another thread", async () => {
    const { loop, worker } = await setup({ slots: 1, abortGrace: 50, isolate: "thread" });
    const before = await loop.run("where");
    let stop = () => {};
    const run = loop.run(
      "deaf",
      {},
      {
        begin: (control) => {
          stop = () => control.stop(new longshore.LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
        },
      },
    );
    await spinning(loop);
    stop();
    expect(await run).toMatchObject({ kind: "failed", error: { code: "LONGSHORE_CANCELLED" } });
    const after = await loop.run("where");
    expect(after).toMatchObject({ kind: "done" });
    expect(after).not.toEqual(before);
    expect(worker.isHealthy()).toBe(true);
  });

  it.each([
    ["exit", /exit code 7/, "Error"],
    ["uncaught", /nobody caught this/, "RangeError"],
    ["memory", /memory limit/, "Error"],
  ])("[C-ARCH-07] whose thread crashes (%s) fails and may be tried again, and the thread is replaced", async (how, message, name) => {
    const { loop, worker, lines } = await setup({ slots: 1, isolateMemoryMb: 64, metrics: true });
    const crashes: unknown[] = [];
    worker.on("isolateCrashed", ({ isolate, tasks }) => crashes.push([isolate, tasks]));
    expect(await loop.run("crash", { how })).toMatchObject({
      kind: "failed",
      retryable: true,
      error: { name, message: expect.stringMatching(message) },
    });
    expect(await loop.run("where")).toMatchObject({ kind: "done" });
    await until(() => crashes.length === 1);
    expect(crashes).toEqual([["thread", ["crash"]]]);
    expect(lines.join("\n")).toMatch(/A thread of handlers is replaced \(it was running crash/);
    expect(worker.metrics()).toContain(`thread_uncaught_exceptions_total{exception="${name}"} 1\n`);
  });
});

describe("a handler in a process", () => {
  it("[C-ARCH-04] runs in a separate process for its task, which runs all its calls", async () => {
    const { loop } = await setup({ isolate: "process", slots: 4 });
    const [one, two] = await Promise.all([loop.run("where"), loop.run("where")]);
    expect(one).toEqual(two);
    expect(one).toMatchObject({ kind: "done", output: { pid: expect.any(Number), threadId: 0 } });
    expect(one).not.toMatchObject({ output: { pid: process.pid } });
    expect(await loop.run("async1")).toMatchObject({ kind: "done" });
  });

  it("that is killed fails and may be retried, does not affect other tasks, and is replaced", async () => {
    const { loop, worker } = await setup({ isolate: "process" });
    const neighbour = await loop.run("where");
    expect(await loop.run("crash", { how: "kill" })).toMatchObject({
      kind: "failed",
      retryable: true,
      error: { message: expect.stringContaining("it was ended by SIGKILL") },
    });
    expect(await loop.run("where")).toEqual(neighbour);
    expect(await loop.run("crash", { how: "exit" })).toMatchObject({ error: { message: expect.stringContaining("exit code 7") } });
    expect(worker.isHealthy()).toBe(true);
  });
});

describe("a process of handlers that crashes again and again", () => {
  it("[C-SUP-07, C-SUP-08, C-SUP-10] is restarted at once, then after 5 s, and every restart is counted", async () => {
    const clock = new testing.TestClock();
    const { loop, worker } = await setup({ isolate: "process", clock, metrics: true });
    const crash = () => loop.run("crash", { how: "exit" });
    expect([await crash(), await crash()]).toMatchObject([{ kind: "failed" }, { kind: "failed" }]);
    expect(worker.workers().crash).toMatchObject({ alive: true, restarts: 1 });
    const third = crash();
    await clock.armed(5_000);
    await clock.advance(4_999);
    expect(worker.workers().crash?.restarts).toBe(1);
    await clock.advance(1);
    expect(await third).toMatchObject({ kind: "failed", error: { message: expect.stringContaining("exit code 7") } });
    expect(worker.workers()).toMatchObject({ crash: { restarts: 2 }, where: { restarts: 0 } });
    expect(worker.metrics()).toContain('worker_restart_total{task_type="crash"} 2\n');
  });
});

describe("the place where a handler runs", () => {
  it("[C-ARCH-08] depends on its signature when this is requested: async functions run here, others in a thread", async () => {
    const { loop } = await setup({ isolate: "auto" });
    expect(await loop.run("async1")).toMatchObject({ output: { threadId: (await import("node:worker_threads")).threadId } });
    const elsewhere = await loop.run("where");
    expect(elsewhere).toMatchObject({ kind: "done" });
    expect(elsewhere).not.toMatchObject({ output: { threadId: (await import("node:worker_threads")).threadId } });
  });

  it("comes from the task's setting, else from the worker's", async () => {
    const { loop } = await setup(
      {},
      'import { task } from "longshore";\nexport const here = task("here", () => process.pid, { isolate: "process" });\n',
    );
    expect(await loop.run("here")).not.toEqual({ kind: "done", output: process.pid });
  });
});

describe("a module of handlers", () => {
  const on = () => new testing.Loopback();
  const options = { signals: false, logger: false, isolate: "thread" } as const;

  it("that calls work() itself is refused with advice", async () => {
    const text =
      'import { task, work } from "longshore";\nimport { Loopback } from "longshore/testing";\n' +
      'export const a = task("a", () => 1);\nawait work({ tasks: [a], on: new Loopback(), signals: false });\n';
    const { module } = moduleWith(text);
    await expect(work({ tasks: [task("a", () => 1)], on: on(), module, ...options })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringMatching(/calls work\(\) while it is loaded for the tasks it exports\. Keep tasks in a module of their own/),
    });
  });

  it("must be named, must exist, and must export the task", async () => {
    const tasks = [task("a", () => 1)];
    await expect(work({ tasks, on: on(), ...options })).rejects.toThrow(/"a" is to run in a thread of its own, which needs the module/);
    await expect(work({ tasks, on: on(), module: "/nowhere/tasks.mjs", ...options })).rejects.toThrow(/tasks\.mjs does not exist/);
    const { module } = moduleWith();
    await expect(work({ tasks, on: on(), module, ...options })).rejects.toThrow(/does not export the task "a"/);
  });

  it("may be TypeScript when tsx is installed", async () => {
    const { module } = moduleWith(
      'import { task } from "longshore";\nexport const typed = task("typed", (n: number) => n + 1);\n',
      "tasks.ts",
    );
    const loop = on();
    const worker = await work({ tasks: [task("typed", () => 0)], on: loop, module, ...options });
    onTestFinished(() => worker.stop({ force: true }));
    expect(await loop.run("typed", 41)).toEqual({ kind: "done", output: 42 });
  });
});
