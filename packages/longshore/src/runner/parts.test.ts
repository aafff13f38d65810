// Parts in a real worker. The test is the other side of the transport.

import { describe, expect, it } from "vitest";
import { deferred, until } from "../../test/support/until.ts";
import type { StepPart } from "../core/context.ts";
import { LongshoreError } from "../core/errors.ts";
import { type Task, task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback, type LoopbackOptions } from "../testing/loopback.ts";
import { work } from "../work.ts";

async function setup(tasks: Task[], options: LoopbackOptions = {}) {
  const clock = new TestClock();
  const loop = new Loopback(options);
  const worker = await work({ tasks, on: loop, slots: 2, signals: false, clock, logger: false });
  return { clock, loop, worker, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

const counter = task("count", async ({ to }: { to: number }, ctx) => {
  for (let at = 1; at <= to; at++) await ctx.emit({ at });
  return "counted";
});

describe("ctx.emit", () => {
  it("sends parts in order, with their number as the default name", async () => {
    const named = task("named", async (_input: unknown, ctx) => {
      await ctx.emit(1);
      await ctx.emit(2, { uid: "two" });
      await ctx.emit(3);
    });
    await using s = await setup([named]);
    await s.loop.run("named");
    expect(s.loop.emitted).toEqual([
      { uid: "1", value: 1 },
      { uid: "two", value: 2 },
      { uid: "3", value: 3 },
    ]);
  });

  it("gives parts different names in each call of a deferred handler", async () => {
    const twice = task("twice", async (_input: unknown, ctx) => {
      await ctx.emit(ctx.deferrals);
      return ctx.deferrals === 0 ? ctx.defer("1s") : "done";
    });
    await using s = await setup([twice], { capabilities: { defer: false } });
    const ended = s.loop.run("twice");
    await until(() => s.loop.emitted.length === 1);
    await s.clock.advance(1_000);
    expect(await ended).toEqual({ kind: "done", output: "done" });
    expect(s.loop.emitted.map(({ uid }) => uid)).toEqual(["1", "1.1"]);
  });

  it("sends parts together that are emitted while others are being sent, and reports only when all have arrived", async () => {
    const eager = task("eager", async (_input: unknown, ctx) => {
      for (let at = 0; at < 1_200; at++) void ctx.emit(at);
      return "done";
    });
    const groups: number[] = [];
    const gate = deferred<void>();
    let reported = false;
    await using s = await setup([eager]);
    const ended = s.loop.run(
      "eager",
      {},
      {
        emit: async (parts) => {
          groups.push(parts.length);
          await gate.promise;
        },
        report: async () => {
          reported = true;
          return { verdict: "ok" };
        },
      },
    );
    await until(() => groups.length === 1);
    expect(reported).toBe(false);
    gate.resolve();
    expect(await ended).toEqual({ kind: "done", output: "done" });
    expect(groups).toEqual([500, 500, 200]);
  });

  it("sends failed parts again, in order", async () => {
    const sent: StepPart[] = [];
    let refusals = 2;
    await using s = await setup([counter]);
    const ended = s.loop.run(
      "count",
      { to: 2 },
      {
        emit: async (parts) => {
          if (refusals-- > 0) throw new LongshoreError("LONGSHORE_UNREACHABLE", "nobody there");
          sent.push(...parts);
        },
      },
    );
    await until(() => refusals < 2);
    await s.clock.advance(100);
    await until(() => refusals < 1);
    await s.clock.advance(200);
    expect(await ended).toEqual({ kind: "done", output: "counted" });
    expect(sent.map(({ value }) => value)).toEqual([{ at: 1 }, { at: 2 }]);
  });

  it("stops the handler when the hold is over, and then nothing is reported", async () => {
    await using s = await setup([counter]);
    const emit = async () => {
      throw new LongshoreError("LONGSHORE_LEASE_LOST", "gone");
    };
    await expect(s.loop.run("count", { to: 3 }, { emit })).rejects.toMatchObject({ code: "LONGSHORE_LEASE_LOST" });
  });

  it("fails the task when a part is refused, even if the handler did not wait for it", async () => {
    const careless = task("careless", async (_input: unknown, ctx) => {
      void ctx.emit(1, { uid: "" });
      return "done";
    });
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const odd = task("odd", async (_input: unknown, ctx) => void ctx.emit(cyclic));
    await using s = await setup([careless, odd]);
    expect(await s.loop.run("careless")).toMatchObject({ kind: "failed", error: { code: "LONGSHORE_BAD_INPUT" } });
    expect(await s.loop.run("odd")).toMatchObject({ kind: "failed" });
    expect(s.loop.emitted).toEqual([]);
  });

  it("refuses a part when too many wait, and explains what to do", async () => {
    const flood = task("flood", async (_input: unknown, ctx) => {
      for (let at = 0; at < 20_000; at++) void ctx.emit(at);
    });
    await using s = await setup([flood]);
    expect(await s.loop.run("flood")).toMatchObject({
      kind: "failed",
      error: { code: "LONGSHORE_LIMIT", message: expect.stringContaining("await ctx.emit()") },
    });
  });

  it("is reported as progress where the protocol does not support parts", async () => {
    await using s = await setup([counter], { capabilities: { streams: false } });
    expect(await s.loop.run("count", { to: 1 })).toEqual({ kind: "done", output: "counted" });
    expect(s.loop.progress).toEqual([{ at: 1 }]);
  });
});

describe("ctx.parts", () => {
  const sum = task("sum", async (_input: unknown, ctx) => {
    let total = 0;
    for await (const { value } of ctx.parts("numbers")) total += value as number;
    return total;
  });
  const parts = (...values: number[]) => values.map((value, at) => ({ uid: String(at), value }));

  it("returns the parts of another step until this step has ended", async () => {
    await using s = await setup([sum]);
    expect(await s.loop.run("sum", {}, { parts: { numbers: parts(1, 2, 3) } })).toEqual({ kind: "done", output: 6 });
  });

  it("throws when the other step failed, after the parts of this step", async () => {
    const seen: unknown[] = [];
    const watcher = task("watcher", async (_input: unknown, ctx) => {
      for await (const { value } of ctx.parts("numbers")) seen.push(value);
    });
    await using s = await setup([watcher]);
    const failing = async function* () {
      yield* parts(1);
      throw new LongshoreError("LONGSHORE_TASK_FAILED", "numbers failed");
    };
    expect(await s.loop.run("watcher", {}, { parts: { numbers: failing() } })).toMatchObject({
      kind: "failed",
      error: { code: "LONGSHORE_TASK_FAILED" },
    });
    expect(seen).toEqual([1]);
  });

  it("ends when the given signal aborts, or with the handler's work", async () => {
    const patient = task("patient", async (_input: unknown, ctx) => {
      const own = new AbortController();
      try {
        for await (const _part of ctx.parts("numbers", { signal: own.signal })) own.abort(new Error("enough"));
      } catch (error) {
        return (error as Error).message;
      }
      return "went on";
    });
    await using s = await setup([patient]);
    expect(await s.loop.run("patient", {}, { parts: { numbers: parts(1, 2) } })).toEqual({ kind: "done", output: "enough" });
  });

  it("fails when the protocol does not support parts", async () => {
    await using s = await setup([sum], { capabilities: { streams: false } });
    expect(await s.loop.run("sum")).toMatchObject({
      kind: "failed",
      error: { code: "LONGSHORE_BAD_CONFIG", message: expect.stringContaining("loopback does not support parts") },
    });
  });
});
