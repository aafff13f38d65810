// The events of a worker. A listener can neither delay nor break the worker.

import { describe, expect, it } from "vitest";
import { deferred, until } from "../../test/support/until.ts";
import { TerminalError } from "../core/errors.ts";
import { type Task, task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback } from "../testing/loopback.ts";
import { type WorkOptions, work } from "../work.ts";
import { Events, type Listeners } from "./events.ts";
import { waitingMax } from "./listener-queue.ts";
import type { Notice } from "./notices.ts";

const ids = { runId: "run", stepId: "greet", taskId: "greet-0", grantId: "greet-0-grant" };

async function setup(tasks: Task[], options: Partial<WorkOptions> = {}, loop = new Loopback()) {
  const clock = new TestClock();
  const notices: Notice[] = [];
  const logger = (notice: Notice) => void notices.push(notice);
  const worker = await work({ tasks, on: loop, slots: 2, signals: false, clock, logger, ...options });
  return { clock, loop, worker, notices, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

const greet = task("greet", ({ name }: { name: string }) => ({ text: `Hello, ${name}!` }));

describe("the events of an execution", () => {
  it("[C-EVT-04, C-EVT-05, C-EXEC-03] report the worker, the task, the duration, and the size of the output", async () => {
    const seen: unknown[] = [];
    const listeners: Listeners = {
      executionStarted: (event) => seen.push(["started", event]),
      executionCompleted: (event) => seen.push(["completed", event]),
      updateCompleted: (event) => seen.push(["updated", event]),
    };
    await using s = await setup([greet], { listeners: [listeners] });
    await s.clock.advance(5);
    await s.loop.run("greet", { name: "Ada" }, { worker: "dock-1" });
    await until(() => seen.length === 3);
    const common = { task: "greet", transport: "loopback", worker: "dock-1", attempt: 1, ids, atMs: s.clock.now() };
    expect(seen).toEqual([
      ["started", common],
      ["completed", { ...common, kind: "done", durationMs: 0, outputBytes: '{"text":"Hello, Ada!"}'.length }],
      ["updated", { ...common, durationMs: 0 }],
    ]);
  });

  it("[C-EVT-06, C-EXEC-12] a failure has its class, its message and whether it may be retried", async () => {
    const seen: unknown[] = [];
    const throwing = (error: Error) => () => {
      throw error;
    };
    await using s = await setup([task("type", throwing(new TypeError("no number"))), task("final", throwing(new TerminalError("never")))]);
    s.worker.on("executionFailed", ({ task: name, error, retryable }) => seen.push([name, error.name, error.message, retryable]));
    s.worker.on("executionCompleted", () => seen.push("completed"));
    await s.loop.run("type");
    await s.loop.run("final");
    await until(() => seen.length === 2);
    expect(seen).toEqual([
      ["type", "TypeError", "no number", true],
      ["final", "TerminalError", "never", false],
    ]);
  });

  it("[C-EVT-07] every failed attempt of a report is an event, and the last event has the result that was not delivered", async () => {
    const loop = Object.assign(new Loopback(), { reportTries: { pausesMs: [10_000, 20_000, 30_000] } });
    await using s = await setup([greet], {}, loop);
    const tries: unknown[] = [];
    const failed: unknown[] = [];
    const kept: unknown[] = [];
    s.worker.on("updateTryFailed", ({ tries: count, error, atMs }) => tries.push([count, error.message, atMs]));
    s.worker.on("updateFailed", ({ tries: count, error, result, ids: { taskId } }) => failed.push([count, error.message, result, taskId]));
    const report = () => Promise.reject(new Error("503"));
    const startedMs = s.clock.now();
    const run = s.loop.run("greet", { name: "Ada" }, { report, undelivered: (outcome) => void kept.push(outcome) });
    run.catch(() => {});
    for (const waitMs of [10_000, 20_000, 30_000]) {
      await s.clock.advance(waitMs - 1);
      const before = tries.length;
      await s.clock.advance(1);
      await until(() => tries.length === before + 1);
    }
    await expect(run).rejects.toMatchObject({ code: "LONGSHORE_LEASE_LOST" });
    await until(() => failed.length === 1);
    const at = [0, 10_000, 30_000, 60_000].map((ms) => startedMs + ms);
    expect(tries).toEqual(at.map((ms, index) => [index + 1, "503", ms]));
    const result = { kind: "done", output: { text: "Hello, Ada!" } };
    expect(failed).toEqual([[4, "503", result, "greet-0"]]);
    expect(kept).toEqual([result]);
  });

  it("[C-EVT-01, C-EVT-02, C-EVT-03] a transport reports its polls, with its own name added", async () => {
    await using s = await setup([greet]);
    const seen: unknown[] = [];
    s.worker.on("pollStarted", ({ atMs, ...event }) => seen.push(event));
    s.worker.on("pollCompleted", ({ received, durationMs }) => seen.push({ received, durationMs }));
    s.worker.on("pollFailed", ({ error, durationMs }) => seen.push({ error, durationMs }));
    const poll = { task: "greet", worker: "dock-1" };
    const error = new Error("refused");
    s.loop.host.emit("pollStarted", { ...poll, count: 2 });
    s.loop.host.emit("pollCompleted", { ...poll, durationMs: 7, received: 1 });
    s.loop.host.emit("pollFailed", { ...poll, durationMs: 3, error });
    await until(() => seen.length === 3);
    expect(seen).toContainEqual({ ...poll, transport: "loopback", count: 2 });
    expect(seen).toContainEqual({ received: 1, durationMs: 7 });
    expect(seen).toContainEqual({ error, durationMs: 3 });
    expect(s.loop.host.wants("pollFailed")).toBe(true);
    expect(s.loop.host.wants("paused")).toBe(false);
  });
});

describe("listeners", () => {
  function events() {
    const clock = new TestClock();
    const notices: Notice[] = [];
    return { clock, notices, events: new Events(clock, (notice) => notices.push(notice)) };
  }
  const connected = { transport: "loopback" };

  it("[C-EVT-08] may be several for one event, are called in order, and are not called after they were removed", async () => {
    const { events: bus } = events();
    const seen: string[] = [];
    const first = () => seen.push("first");
    const removeFirst = bus.on("connected", first);
    bus.on("connected", first);
    bus.on("connected", () => seen.push("second"));
    bus.emit("connected", connected);
    await bus.settled();
    removeFirst();
    bus.emit("connected", connected);
    await bus.settled();
    expect(seen).toEqual(["first", "second", "second"]);
  });

  it("[C-EVT-09] that throw or reject are logged once, and other listeners get all events", async () => {
    const { events: bus, notices } = events();
    let heard = 0;
    bus.on("connected", () => {
      throw new Error("broken listener");
    });
    bus.on("connected", () => Promise.reject(new Error("rejecting listener")));
    bus.on("connected", () => heard++);
    for (let count = 0; count < 3; count++) bus.emit("connected", connected);
    await bus.settled();
    expect(heard).toBe(3);
    expect(notices.map(({ message }) => message)).toEqual([
      expect.stringContaining("broken listener"),
      expect.stringContaining("rejecting listener"),
    ]);
  });

  it("[C-EVT-10] never delay the worker: a listener that never settles only loses its own events", async () => {
    await using s = await setup([greet]);
    s.worker.on("executionStarted", () => new Promise(() => {}));
    expect(await s.loop.run("greet", { name: "Ada" })).toMatchObject({ kind: "done" });
    const { events: bus, notices } = events();
    const gate = deferred<void>();
    const seen: number[] = [];
    bus.on("loopBlocked", async ({ blockedMs }) => {
      await gate.promise;
      seen.push(blockedMs);
    });
    const told = waitingMax + 5;
    for (let blockedMs = 0; blockedMs < told; blockedMs++) bus.emit("loopBlocked", { blockedMs, tasks: [] });
    expect(bus.dropped).toBe(5);
    expect(notices).toHaveLength(1);
    gate.resolve();
    await bus.settled();
    expect(seen).toEqual(Array.from({ length: waitingMax }, (_, at) => at));
  });

  it("[C-EVT-11] may be one object with any of the methods, which keep their `this`", async () => {
    const { events: bus } = events();
    class Counting {
      heard = 0;
      connected() {
        this.heard++;
      }
    }
    const counting = new Counting();
    const remove = bus.onAll(counting);
    bus.emit("connected", connected);
    await bus.settled();
    remove();
    expect(counting.heard).toBe(1);
    expect(bus.wants("connected")).toBe(false);
  });

  it("[C-EVT-12] get events about pauses and accepted updates", async () => {
    const { events: bus } = events();
    const seen: string[] = [];
    bus.onAll({ paused: () => seen.push("paused"), resumed: () => seen.push("resumed"), updateCompleted: () => seen.push("updated") });
    const poll = { task: "greet", transport: "loopback", worker: undefined };
    bus.emit("paused", poll);
    bus.emit("resumed", poll);
    bus.emit("updateCompleted", { ...poll, ids, attempt: 1, durationMs: 1 });
    await bus.settled();
    expect(seen.sort()).toEqual(["paused", "resumed", "updated"]);
  });
});
