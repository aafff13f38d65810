// One assignment at a time in a real worker. The test is the other side of the transport.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { deferred, until } from "../../test/support/until.ts";
import { type Context, currentContext } from "../core/context.ts";
import { LongshoreError, TerminalError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import { type Task, task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback, type LoopbackOptions } from "../testing/loopback.ts";
import { work } from "../work.ts";
import type { Notice } from "./notices.ts";
import type { Control } from "./transport.ts";

async function setup(tasks: Task[], options: LoopbackOptions = {}) {
  const clock = new TestClock();
  const loop = new Loopback(options);
  const notices: Notice[] = [];
  const worker = await work({ tasks, on: loop, slots: 2, signals: false, clock, logger: (notice) => void notices.push(notice) });
  return { clock, loop, worker, notices, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

describe("input and output", () => {
  it("a handler's value is the output, and undefined becomes null", async () => {
    await using s = await setup([task("echo", (input: { a: number }) => input), task("none", async () => {})]);
    expect(await s.loop.run("echo", { a: 1 })).toEqual({ kind: "done", output: { a: 1 } });
    expect(await s.loop.run("none")).toEqual({ kind: "done", output: null });
  });

  it("input that does not fit the schema fails permanently, names the field, and never reaches the handler", async () => {
    let called = false;
    const handler = () => {
      called = true;
    };
    await using s = await setup([task("strict", handler, { input: z.object({ name: z.string() }) })]);
    const outcome = await s.loop.run("strict", { name: 5 });
    expect(outcome).toMatchObject({ kind: "failed", retryable: false, error: { code: "LONGSHORE_BAD_INPUT" } });
    expect(JSON.stringify(outcome)).toContain("name: ");
    expect(called).toBe(false);
  });

  it("output is checked by its schema, and a value that does not fit fails permanently", async () => {
    const output = z.object({ id: z.string(), extra: z.string().default("none") });
    const handler = (input: { id: unknown }) => ({ id: input.id as string });
    await using s = await setup([task("strict", handler, { output })]);
    expect(await s.loop.run("strict", { id: "x" })).toEqual({ kind: "done", output: { id: "x", extra: "none" } });
    expect(await s.loop.run("strict", { id: 7 })).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { code: "LONGSHORE_BAD_OUTPUT" },
    });
  });

  it("an unknown task is refused permanently", async () => {
    await using s = await setup([]);
    expect(await s.loop.run("nobody")).toMatchObject({ kind: "failed", retryable: false, error: { code: "LONGSHORE_NO_HANDLER" } });
  });

  it("an input that cannot be fetched now may be retried", async () => {
    await using s = await setup([]);
    const slot = await s.loop.host.slots.take();
    const reports: unknown[] = [];
    const assignment = {
      ...s.loop.assignment("x", {}),
      resolve: () => Promise.reject(new Error("storage is away")),
      report: async (outcome: unknown) => {
        reports.push(outcome);
        return { verdict: "ok" as const };
      },
    };
    await slot?.run(assignment);
    expect(reports).toMatchObject([{ kind: "failed", retryable: true, error: { message: "storage is away" } }]);
  });

  it("an error of a handler may be retried, but a TerminalError may not", async () => {
    const throws = (error: unknown) => () => {
      throw error;
    };
    await using s = await setup([
      task("oops", throws(new Error("oops"))),
      task("never", throws(new TerminalError("never"))),
      task("text", throws("text")),
    ]);
    expect(await s.loop.run("oops")).toMatchObject({ kind: "failed", retryable: true, error: { message: "oops" } });
    expect(await s.loop.run("never")).toMatchObject({ kind: "failed", retryable: false });
    expect(await s.loop.run("text")).toMatchObject({ kind: "failed", retryable: true, error: { message: "text" } });
  });
});

describe("the context", () => {
  it("passes the orchestrator's own data to the handler, and the handler's orchestrator-specific result back", async () => {
    const amended: [string, unknown][] = [];
    const teller = task("teller", (_input: unknown, ctx) => {
      ctx.amend("later", 5);
      return ctx.native ?? null;
    });
    await using s = await setup([teller]);
    const call = { native: { polls: 2 }, amend: (name: string, value: unknown) => void amended.push([name, value]) };
    expect(await s.loop.run("teller", {}, call)).toEqual({ kind: "done", output: { polls: 2 } });
    expect(await s.loop.run("teller")).toEqual({ kind: "done", output: null });
    expect(amended).toEqual([["later", 5]]);
  });

  it("passes on calls to the orchestrator, and fails when the transport has none", async () => {
    const asker = task("asker", (_input: unknown, ctx) => ctx.ask("weather", { at: "sea" }));
    await using s = await setup([asker]);
    const call = { ask: async (name: string, value: Json, signal: AbortSignal) => [name, value, signal.aborted] };
    expect(await s.loop.run("asker", {}, call)).toEqual({ kind: "done", output: ["weather", { at: "sea" }, false] });
    expect(await s.loop.run("asker")).toMatchObject({
      kind: "failed",
      error: { code: "LONGSHORE_BAD_CONFIG", message: 'loopback has no call "weather".' },
    });
  });

  it("is also found by code that the handler calls, separately for each handler, and by no other code", async () => {
    const whoami = async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return currentContext().ids.taskId;
    };
    await using s = await setup([task("who", async () => whoami())]);
    const outcomes = await Promise.all([s.loop.run("who"), s.loop.run("who")]);
    expect(outcomes).toEqual([
      { kind: "done", output: "who-0" },
      { kind: "done", output: "who-1" },
    ]);
    expect(() => currentContext()).toThrow(/outside a running handler/);
  });

  it("sends only the newest progress while an earlier one is being sent, as parts or as log lines", async () => {
    const tell = task("tell", async (_input: unknown, ctx) => {
      for (let percent = 0; percent <= 100; percent += 10) ctx.progress({ percent });
      await new Promise((resolve) => setImmediate(resolve));
    });
    await using s = await setup([tell]);
    await s.loop.run("tell");
    expect(s.loop.progress).toEqual([{ percent: 0 }, { percent: 100 }]);
    await using without = await setup([tell], { capabilities: { progress: false } });
    await without.loop.run("tell");
    expect(without.loop.logs.at(-1)?.text).toBe('progress: {"percent":100}\n');
  });

  it("logs texts and fields, and never throws for values that JSON refuses", async () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const chatty = task("chatty", (_input: unknown, ctx) => {
      ctx.log("plain");
      ctx.log({ level: "warn", left: 3 }, "stderr");
      ctx.log(cycle);
    });
    await using s = await setup([chatty]);
    expect(await s.loop.run("chatty")).toEqual({ kind: "done", output: null });
    expect(s.loop.logs.map(({ text, stream, sequence }) => [sequence, stream, text])).toEqual([
      [0, "stdout", "plain\n"],
      [1, "stderr", '{"level":"warn","left":3}\n'],
      [2, "stdout", "[object Object]\n"],
    ]);
  });

  it("passes on blobs, or refuses them with a clear error when the transport does not support them", async () => {
    const store = task("store", (_input: unknown, ctx) => ctx.blobs.put("bytes"));
    await using s = await setup([store]);
    expect(await s.loop.run("store")).toMatchObject({
      kind: "failed",
      error: { code: "LONGSHORE_BAD_CONFIG", message: expect.stringContaining("loopback does not support blobs") },
    });
    const blobs = { put: async () => "sha256-x", get: async () => new Uint8Array() };
    expect(await s.loop.run("store", {}, { blobs })).toEqual({ kind: "done", output: "sha256-x" });
  });

  it("can renew the hold by a call, which reports when the hold is lost", async () => {
    const started = deferred<Context>();
    const held = task("held", async (_input: unknown, ctx) => {
      started.resolve(ctx);
      await ctx.heartbeat();
      return ctx.heartbeat();
    });
    let beats = 0;
    const beat = async () => ({ verdict: beats++ === 0 ? ("ok" as const) : ("gone" as const) });
    await using s = await setup([held]);
    await expect(s.loop.run("held", {}, { hold: { termMs: 30_000, everyMs: 10_000 }, beat })).rejects.toMatchObject({
      code: "LONGSHORE_LEASE_LOST",
    });
    expect((await started.promise).signal.reason).toMatchObject({ code: "LONGSHORE_LEASE_LOST" });
    expect(beats).toBe(2);
  });

  it("defers through a transport that supports this", async () => {
    await using s = await setup([task("later", (_input: unknown, ctx) => ctx.defer("5m", { page: 2 }))]);
    expect(await s.loop.run("later")).toEqual({ kind: "deferred", delayMs: 300_000, output: { page: 2 } });
  });

  it("gives a deferred call its earlier state, when the transport returns it", async () => {
    await using s = await setup([task("later", (_input: unknown, ctx) => ({ rounds: ctx.deferrals, kept: ctx.deferred }))]);
    expect(await s.loop.run("later", {}, { deferrals: 2, deferred: { page: 3 } })).toEqual({
      kind: "done",
      output: { rounds: 2, kept: { page: 3 } },
    });
  });
});

describe("stopping a handler", () => {
  const endless = task(
    "endless",
    (_input: unknown, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
  );

  it("the shorter of both timeouts aborts it, and the failure may be retried", async () => {
    await using s = await setup([task("slow", endless.handle, { timeout: "10s" })]);
    const own = s.loop.run("slow");
    await s.clock.advance(10_000);
    expect(await own).toMatchObject({
      kind: "failed",
      retryable: true,
      error: { code: "LONGSHORE_DEADLINE", message: 'Task "slow" timed out after 10.0 s.' },
    });
    const theirs = s.loop.run("slow", {}, { timeoutMs: 3_000 });
    await s.clock.advance(3_000);
    expect(await theirs).toMatchObject({ error: { message: 'Task "slow" timed out after 3.0 s.' } });
    await s.clock.advance(1_000);
    expect(s.clock.pending).toBe(0);
  });

  it("the task's timeout is for one call, so a local wait between two calls does not count", async () => {
    const later = task("later", (_input: unknown, ctx) => (ctx.deferrals === 0 ? ctx.defer("1h") : "done"), { timeout: "1m" });
    await using s = await setup([later], { capabilities: { defer: false } });
    const outcome = s.loop.run("later");
    await s.clock.advance(3_600_000);
    expect(await outcome).toEqual({ kind: "done", output: "done" });
  });

  it("nothing is reported when the hold is lost while the last log lines are sent", async () => {
    let control: Control | undefined;
    const begin = (given: Control) => {
      control = given;
    };
    await using s = await setup([task("chatty", (_input: unknown, ctx) => ctx.log("bye"))]);
    const slot = await s.loop.host.slots.take();
    const reports: unknown[] = [];
    const report = async (outcome: unknown) => {
      reports.push(outcome);
      return { verdict: "ok" as const };
    };
    const log = async () => control?.stop(new LongshoreError("LONGSHORE_LEASE_LOST", "gone"));
    await slot?.run({ ...s.loop.assignment("chatty", {}, { begin, report }), log });
    expect(reports).toEqual([]);
    expect(s.worker.status().counts.lost).toBe(1);
  });

  const lease = { termMs: 30_000, everyMs: 2_000 };

  it("a heartbeat after the result was accepted reports no lost lease, also while the last log lines are sent", async () => {
    await using s = await setup([task("chatty", (_input: unknown, ctx) => ctx.log("bye"))]);
    const slot = await s.loop.host.slots.take();
    const sent = deferred<void>();
    let pushes = 0;
    let beats = 0;
    const log = () => (pushes++ === 0 ? Promise.reject(new Error("away")) : sent.promise);
    const beat = async () => ({ verdict: beats++ === 0 ? ("stale" as const) : ("gone" as const) });
    const ran = slot?.run({ ...s.loop.assignment("chatty", {}, { hold: lease, beat }), log });
    await until(() => pushes === 2);
    await s.clock.advance(4_000);
    sent.resolve();
    await ran;
    expect(s.notices.map(({ message }) => message).filter((message) => message.includes("not wanted"))).toEqual([]);
    expect(s.worker.status().counts).toMatchObject({ done: 1, lost: 0 });
  });

  it("a lease that is over because the result was accepted, with a reply that was lost, is not reported as lost", async () => {
    await using s = await setup([task("quick", () => 1)]);
    const broken = deferred<never>();
    let tries = 0;
    const report = () => (tries++ === 0 ? broken.promise : Promise.resolve({ verdict: "again" as const }));
    const beat = async () => ({ verdict: "stale" as const });
    const ran = s.loop.run("quick", {}, { hold: lease, beat, report });
    await until(() => tries === 1);
    await s.clock.advance(2_000);
    broken.reject(new Error("the server was killed"));
    await until(() => tries === 2);
    expect(await ran).toEqual({ kind: "done", output: 1 });
    expect(s.notices.map(({ message }) => message).filter((message) => message.includes("not wanted"))).toEqual([]);
    expect(s.worker.status().counts).toMatchObject({ done: 1, lost: 0 });
  });

  it("a lease that is lost while the result is reported without success is reported as lost", async () => {
    await using s = await setup([task("quick", () => 1)]);
    const broken = deferred<never>();
    let tries = 0;
    const report = () => (tries++ === 0 ? broken.promise : Promise.resolve({ verdict: "stale" as const }));
    const ran = s.loop.run("quick", {}, { hold: lease, beat: async () => ({ verdict: "stale" as const }), report });
    await until(() => tries === 1);
    await s.clock.advance(2_000);
    broken.reject(new Error("the server was killed"));
    await ran;
    expect(s.notices.map(({ message }) => message)).toContainEqual(expect.stringContaining("not wanted any more"));
    expect(s.worker.status().counts).toMatchObject({ done: 0, lost: 1 });
  });

  it("a handler that ignores its signal is abandoned after the grace period, reported, and named in a warning", async () => {
    await using s = await setup([task("deaf", () => new Promise(() => {}), { timeout: "1s" })]);
    const outcome = s.loop.run("deaf");
    await s.clock.advance(5_999);
    expect(s.worker.status().running).toHaveLength(1);
    await s.clock.advance(1);
    expect(await outcome).toMatchObject({ kind: "failed", retryable: true, error: { code: "LONGSHORE_DEADLINE" } });
    expect(s.worker.status()).toMatchObject({ running: [], slots: { free: 2 }, counts: { abandoned: 1 } });
    expect(s.notices[0]?.message).toContain('Task "deaf"');
  });

  it("an orchestrator may set the grace period of a handler that it stops", async () => {
    let control: Control | undefined;
    const started = deferred<void>();
    const deaf = task("deaf", () => {
      started.resolve();
      return new Promise(() => {});
    });
    await using s = await setup([deaf]);
    const slot = await s.loop.host.slots.take();
    const outcome = deferred<unknown>();
    const report = async (told: unknown) => {
      outcome.resolve(told);
      return { verdict: "ok" as const };
    };
    const begin = (given: Control) => {
      control = given;
    };
    void slot?.run(s.loop.assignment("deaf", {}, { begin, report }));
    await started.promise;
    control?.stop(new LongshoreError("LONGSHORE_CANCELLED", "enough"), 30_000);
    await s.clock.advance(29_999);
    expect(s.worker.status().running).toHaveLength(1);
    await s.clock.advance(1);
    expect(await outcome.promise).toMatchObject({ kind: "failed", retryable: false, error: { code: "LONGSHORE_CANCELLED" } });
    expect(s.notices[0]?.message).toContain("did not end within 30.0 s");
  });

  it("log lines of an abandoned handler after its report are dropped", async () => {
    const late = deferred<Context>();
    const deaf = task(
      "deaf",
      (_input: unknown, ctx) => {
        late.resolve(ctx);
        return new Promise(() => {});
      },
      { timeout: "1s" },
    );
    await using s = await setup([deaf]);
    const outcome = s.loop.run("deaf");
    await s.clock.advance(6_000);
    await outcome;
    (await late.promise).log("too late");
    await s.clock.advance(10_000);
    expect(s.loop.logs).toEqual([]);
    expect(s.clock.pending).toBe(0);
  });

  it("a handler that returns its value after the deadline is still done", async () => {
    const tidy = task(
      "tidy",
      (_input: unknown, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve("saved"))),
      { timeout: "1s" },
    );
    await using s = await setup([tidy]);
    const outcome = s.loop.run("tidy");
    await s.clock.advance(1_000);
    expect(await outcome).toEqual({ kind: "done", output: "saved" });
  });

  it("the transport can stop it at any time, and only the first reason counts", async () => {
    await using s = await setup([endless]);
    let control: Control | undefined;
    const begin = (given: Control) => {
      control = given;
    };
    const outcome = s.loop.run("endless", {}, { begin });
    await until(() => s.worker.status().running.length === 1);
    control?.stop(new LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
    control?.stop(new LongshoreError("LONGSHORE_LEASE_LOST", "too late"));
    expect(await outcome).toMatchObject({ kind: "failed", retryable: false, error: { message: "cancelled" } });
    expect(control?.over.aborted).toBe(true);
  });

  it("work that was cancelled before it began never reaches the handler", async () => {
    let called = false;
    const never = task("never", () => {
      called = true;
    });
    await using s = await setup([never]);
    const begin = (control: Control) => control.stop(new LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
    expect(await s.loop.run("never", {}, { begin })).toMatchObject({ kind: "failed", retryable: false });
    expect(called).toBe(false);
  });
});
