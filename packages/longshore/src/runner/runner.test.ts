// A worker as a whole: slots, several transports, stopping.

import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { deferred, until } from "../../test/support/until.ts";
import { LongshoreError } from "../core/errors.ts";
import { task } from "../core/task.ts";
import { TestClock } from "../testing/clock.ts";
import { Loopback } from "../testing/loopback.ts";
import { type WorkOptions, work } from "../work.ts";
import type { Notice } from "./notices.ts";
import type { Assignment, Outcome } from "./transport.ts";

async function setup(options: Partial<WorkOptions> = {}, loops = [new Loopback()]) {
  const clock = new TestClock();
  const gates: ReturnType<typeof deferred<unknown>>[] = [];
  const gated = task("gated", (_input: unknown, ctx) => {
    const gate = deferred<unknown>();
    gates.push(gate);
    ctx.signal.addEventListener("abort", () => gate.reject(ctx.signal.reason));
    return gate.promise;
  });
  const notices: Notice[] = [];
  const logger = (notice: Notice) => void notices.push(notice);
  const worker = await work({ tasks: [gated], on: loops, slots: 2, signals: false, clock, logger, ...options });
  const loop = loops[0] as Loopback;
  return { clock, loop, worker, gates, notices, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

describe("slots of a worker", () => {
  it("are taken before work is received and kept until the report is settled", async () => {
    await using s = await setup({ slots: 1 });
    const reported = deferred<void>();
    const first = s.loop.run("gated", {}, { report: async () => ({ verdict: await reported.promise.then(() => "ok" as const) }) });
    const second = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    s.gates[0]?.resolve(1);
    await s.clock.advance(0);
    expect(s.gates).toHaveLength(1);
    reported.resolve();
    expect(await first).toEqual({ kind: "done", output: 1 });
    await until(() => s.gates.length === 2);
    s.gates[1]?.resolve(2);
    expect(await second).toEqual({ kind: "done", output: 2 });
  });

  it("a poll takes every free slot and gives back unused slots", async () => {
    await using s = await setup({ slots: 4 });
    const taken = s.loop.host.slots.takeFree();
    expect(taken).toHaveLength(4);
    expect(s.loop.host.slots.free).toBe(0);
    expect(s.worker.status().slots.free).toBe(4);
    for (const slot of taken) slot.release();
    taken[0]?.release();
    expect(s.loop.host.slots.free).toBe(4);
    expect(s.loop.host.slots.takeFree(3)).toHaveLength(3);
  });

  it("are as many as the transports' own limits allow, by default", async () => {
    const limited = () => Object.assign(new Loopback(), { slotsFor: (tasks: ReadonlyMap<string, unknown>) => tasks.size * 25 });
    const clock = new TestClock();
    const total = async (options: Partial<WorkOptions>) => {
      const loop = limited();
      await using worker = await work({
        tasks: [task("a", () => 1)],
        on: [loop, limited()],
        signals: false,
        clock,
        logger: false,
        ...options,
      });
      expect(loop.host.slots.configured).toBe(options.slots);
      return worker.status().slots.total;
    };
    expect(await total({})).toBe(50);
    expect(await total({ slots: 3 })).toBe(3);
  });

  it("a report may return the next work, which runs in the same slot", async () => {
    await using s = await setup({ slots: 1 });
    const outcomes: Outcome[] = [];
    const wanted: boolean[] = [];
    const chain = (left: number): Assignment =>
      s.loop.assignment(
        "gated",
        {},
        {
          report: async (outcome, { wantNext }) => {
            outcomes.push(outcome);
            wanted.push(wantNext);
            return { verdict: "ok", ...(left > 0 ? { next: chain(left - 1) } : {}) };
          },
        },
      );
    const slot = await s.loop.host.slots.take();
    const over = slot?.run(chain(2));
    for (let count = 1; count <= 3; count++) {
      await until(() => s.gates.length === count);
      expect(s.worker.status().slots.free).toBe(0);
      s.gates[count - 1]?.resolve(count);
    }
    await over;
    expect(outcomes.map((outcome) => outcome.kind)).toEqual(["done", "done", "done"]);
    expect(wanted).toEqual([true, true, true]);
    expect(s.worker.status().slots.free).toBe(1);
  });

  it("a report requests no next work while another transport waits for a slot, or while draining", async () => {
    const [first, second] = [new Loopback({ name: "first" }), new Loopback({ name: "second" })];
    await using s = await setup({ slots: 1 }, [first, second]);
    const wanted: boolean[] = [];
    const report: Assignment["report"] = async (_outcome, { wantNext }) => {
      wanted.push(wantNext);
      return { verdict: "ok" };
    };
    const one = first.run("gated", {}, { report });
    const two = second.run("gated", {}, { report });
    await until(() => s.gates.length === 1);
    s.gates[0]?.resolve(1);
    await until(() => s.gates.length === 2);
    const stopped = s.worker.stop();
    s.gates[1]?.resolve(2);
    await Promise.all([one, two, stopped]);
    expect(wanted).toEqual([false, false]);
  });

  it("an empty wait holds a slot only briefly when several transports share the slots", async () => {
    await using alone = await setup();
    expect(alone.loop.host.waitMsMax).toBe(Number.POSITIVE_INFINITY);
    await using shared = await setup({}, [new Loopback(), new Loopback()]);
    expect(shared.loop.host.waitMsMax).toBe(1_000);
  });
});

describe("stopping a worker", () => {
  it("waits for running tasks within the drain time and takes no new task", async () => {
    await using s = await setup();
    const running = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    let closed = false;
    void s.worker.closed.then(() => {
      closed = true;
    });
    const stopped = s.worker.stop();
    expect(s.worker.status().state).toBe("draining");
    await expect(s.loop.run("gated")).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
    await s.clock.advance(19_999);
    expect(closed).toBe(false);
    s.gates[0]?.resolve("in time");
    await stopped;
    await s.worker.closed;
    expect(await running).toEqual({ kind: "done", output: "in time" });
    expect(s.worker.status().state).toBe("stopped");
    expect(s.clock.pending).toBe(0);
  });

  it("[G56] aborts the remaining tasks at the deadline and reports them as failures that may be retried", async () => {
    await using s = await setup({ drain: "10s" });
    const running = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    const stopped = s.worker.stop();
    await s.clock.advance(10_000);
    expect(await running).toMatchObject({ kind: "failed", retryable: true, error: { code: "LONGSHORE_SHUTDOWN" } });
    await stopped;
  });

  it.each([
    ["the longest setting of a transport", {}, 4_000],
    ["the user's setting", { drain: "6s" }, 6_000],
  ] as const)("lets running tasks go on for %s", async (_name, options, drainMs) => {
    await using s = await setup(options, [new Loopback(), Object.assign(new Loopback(), { drainMs: 4_000 })]);
    const running = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    const stopped = s.worker.stop();
    await s.clock.advance(drainMs - 1);
    expect(s.worker.status().running).toHaveLength(1);
    await s.clock.advance(1);
    expect(await running).toMatchObject({ error: { code: "LONGSHORE_SHUTDOWN" } });
    await stopped;
  });

  it("can be forced and can be called twice; a forced stop ends the wait of a graceful stop", async () => {
    await using s = await setup();
    const running = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    const gentle = s.worker.stop();
    const forced = s.worker.stop({ force: true });
    expect(await running).toMatchObject({ kind: "failed", retryable: true });
    await Promise.all([gentle, forced, s.worker.stop()]);
  });

  it("ends within a limited time although a handler and its report both hang", async () => {
    await using s = await setup({ tasks: [task("deaf", () => new Promise(() => {}))], drain: 0 });
    const hangs = s.loop.run("deaf", {}, { report: () => new Promise(() => {}) }).catch(() => {});
    await until(() => s.worker.status().running.length === 1);
    const stopped = s.worker.stop();
    await s.clock.advance(20_000);
    await stopped;
    void hangs;
  });

  it("ends the local wait of a deferral that the transport does not support, as a failure that may be retried", async () => {
    const later = task("later", (_input: unknown, ctx) => ctx.defer("1h"));
    await using s = await setup({ tasks: [later] }, [new Loopback({ capabilities: { defer: false } })]);
    const waiting = s.loop.run("later");
    await s.clock.advance(1_000);
    await s.worker.stop();
    expect(await waiting).toMatchObject({ kind: "failed", retryable: true, error: { code: "LONGSHORE_SHUTDOWN" } });
  });

  it("[G56] is graceful after the first signal and forced after the second, and removes its listeners", async () => {
    const signals = new EventEmitter();
    await using s = await setup({ signals });
    const running = s.loop.run("gated");
    await until(() => s.gates.length === 1);
    signals.emit("SIGTERM", "SIGTERM");
    expect(s.worker.status().state).toBe("draining");
    expect(s.notices.at(-1)?.message).toContain("SIGTERM: stopping; waiting for 1 running task.");
    await s.clock.advance(5_000);
    expect(s.worker.status().running).toHaveLength(1);
    signals.emit("SIGTERM", "SIGTERM");
    expect(await running).toMatchObject({ kind: "failed", retryable: true });
    await s.worker.closed;
    await until(() => signals.listenerCount("SIGTERM") + signals.listenerCount("SIGINT") === 0);
  });

  it("is stopped when a transport refuses to start", async () => {
    const broken = new Loopback();
    broken.start = () => Promise.reject(new LongshoreError("LONGSHORE_BAD_CONFIG", "no such host"));
    const other = new Loopback();
    let stopped = false;
    other.stop = async () => {
      stopped = true;
    };
    await expect(work({ tasks: [], on: [broken, other], signals: false, logger: false })).rejects.toThrow("no such host");
    expect(stopped).toBe(true);
  });
});

describe("what a worker reports", () => {
  it("names the running tasks when the event loop is blocked, once per episode", async () => {
    await using s = await setup();
    const seen: unknown[] = [];
    s.worker.on("loopBlocked", (event) => seen.push(event));
    void s.loop.run("gated").catch(() => {});
    await until(() => s.gates.length === 1);
    s.clock.jump(4_000);
    await s.clock.advance(0);
    await until(() => seen.length > 0);
    expect(seen).toEqual([{ blockedMs: 3_000, tasks: ["gated"], atMs: s.clock.now() }]);
    expect(s.notices.at(-1)?.message).toMatch(/was blocked for 3\.0 s while running "gated"/);
  });

  it("names the task whose handler blocked the event loop, with advice, and no other running task", async () => {
    const clock = new TestClock();
    const hog = task("hog", () => clock.jump(2_500));
    const patient = task("patient", (_input: unknown, ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", resolve)));
    await using s = await setup({ tasks: [hog, patient], clock });
    void s.loop.run("patient").catch(() => {});
    await until(() => s.worker.status().running.length === 1);
    await s.loop.run("hog");
    await clock.advance(0);
    await until(() => s.notices.length > 0);
    expect(s.notices.at(-1)?.message).toMatch(/while running "hog": .* Let a handler that computes run in a thread: isolate: "thread"/);
    expect(s.notices.at(-1)?.message).not.toContain("patient");
  });

  it("has a repeating failure once, then its end with the duration", async () => {
    await using s = await setup();
    const { host } = s.loop;
    for (let count = 0; count < 50; count++) host.failing("claim", new Error("connection refused"));
    expect(s.worker.status().transports).toMatchObject([{ name: "loopback", failing: { error: "connection refused" } }]);
    await s.clock.advance(90_000);
    host.working("claim");
    host.working("claim");
    expect(s.notices.map((notice) => notice.message)).toEqual([
      "loopback: claim fails, trying on: connection refused",
      "loopback: claim works again after 1 m 30 s",
    ]);
    expect(s.worker.status().transports).toEqual([{ name: "loopback", failing: undefined }]);
  });

  it("has the first answer of a transport's peer once", async () => {
    await using s = await setup();
    const seen: unknown[] = [];
    s.worker.on("connected", (event) => seen.push(event));
    s.loop.host.failing("claim", new Error("refused"));
    expect(seen).toEqual([]);
    for (const what of ["register", "claim", "claim"]) s.loop.host.working(what);
    await until(() => seen.length > 0);
    expect(seen).toEqual([{ transport: "loopback", atMs: s.clock.now() }]);
  });

  it("has events with ids and durations, also when a listener throws", async () => {
    await using s = await setup();
    const seen: unknown[] = [];
    s.worker.on("taskEnded", () => {
      throw new Error("a listener's own mistake");
    });
    const off = s.worker.on("taskEnded", ({ task: name, kind, durationMs }) => seen.push([name, kind, durationMs]));
    for (let count = 1; count <= 2; count++) {
      const outcome = s.loop.run("gated");
      await until(() => s.gates.length === count);
      await s.clock.advance(250);
      s.gates[count - 1]?.resolve(null);
      await outcome;
      await until(() => seen.length === 1);
      off();
    }
    expect(seen).toEqual([["gated", "done", 250]]);
    expect(s.worker.status().counts).toMatchObject({ done: 2, failed: 0, lost: 0 });
  });
});

describe("options of a worker", () => {
  const on = new Loopback();
  it.each([
    ["two tasks of one name", { tasks: [task("a", () => 1), task("a", () => 2)], on }, 'Two tasks are named "a"'],
    ["no slots", { tasks: [], on, slots: 0 }, "slots is 0"],
    ["no transport", { tasks: [], on: [] }, "on is an empty list"],
    ["a drain that is not a duration", { tasks: [], on, drain: "soon" as "1s" }, "drain is"],
  ])("refuse %s", async (_what, options, message) => {
    await expect(work({ ...options, signals: false })).rejects.toThrow(message);
  });

  it("accept everything that can make a transport", async () => {
    const loop = new Loopback();
    await using worker = await work({ tasks: [task("one", () => 1)], on: { transport: () => loop }, signals: false, logger: false });
    expect(await loop.run("one")).toEqual({ kind: "done", output: 1 });
    expect(worker.status().tasks).toEqual(["one"]);
  });
});

it("reports to listeners that a server has answered once the worker has started, also when it answered before that", async () => {
  class Early extends Loopback {
    override async start(host: Parameters<Loopback["start"]>[0]): Promise<void> {
      await super.start(host);
      host.working("hello");
    }
  }
  await using s = await setup({}, [new Early()]);
  const told: string[] = [];
  s.worker.on("connected", ({ transport }) => void told.push(transport));
  await until(() => told.length === 1);
});
