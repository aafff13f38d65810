// The poll loop: what it requests and when, and what it does with the tasks.

import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, type ConductorStub, json, pollOf } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";
import { work } from "../../../work.ts";
import { conductor } from "./index.ts";
import { emptyWaitMs } from "./poll.ts";

/** A task whose calls end when the test allows it. */
function gatedTask(name = "gated") {
  const gates: (() => void)[] = [];
  const gated = task(name, async (_input: unknown, ctx) => {
    await new Promise<void>((resolve) => {
      gates.push(resolve);
      ctx.signal.addEventListener("abort", () => resolve());
    });
    return null;
  });
  return { task: gated, gates };
}

function enqueue(stub: ConductorStub, type: string, count: number): void {
  for (let n = 0; n < count; n++) stub.enqueue(type);
}

const counts = (polls: readonly { readonly query: string }[]) => polls.map(({ query }) => Number(new URLSearchParams(query).get("count")));

describe("a poll", () => {
  it("[C-WIRE-01, C-POLL-09, C-POLL-14] is a GET of the batch path with workerid, count and timeout, also for one task", async () => {
    await using s = await setup({ tasks: [task("my_task/1", () => null)] });
    const poll = s.stub.seen(anyPoll)[0] ?? (await s.stub.next(anyPoll));
    expect(poll.method).toBe("GET");
    expect(poll.path).toBe("/api/tasks/poll/batch/my_task%2F1");
    expect(poll.query).toBe("workerid=w1&count=1&timeout=100");
    expect(poll.text).toBe("");
  });

  it("[C-POLL-14, C-DOM-01] names its domain, and gets only tasks of this domain", async () => {
    const seen: unknown[] = [];
    const greet = task("greet", (input: { n: number }) => void seen.push(input.n));
    await using s = await setup({ tasks: [greet], wire: { domain: "eu" } });
    s.stub.enqueue("greet", { inputData: { n: 1 } });
    s.stub.enqueue("greet", { inputData: { n: 2 } }, "eu");
    while (seen.length === 0) await s.clock.advance(1);
    expect(s.stub.seen(pollOf("greet"))[0]?.query).toBe("workerid=w1&domain=eu&count=1&timeout=100");
    expect(seen).toEqual([2]);
  });

  it("[C-PIT-05] leaves out an empty domain", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { domain: "" } });
    const poll = s.stub.seen(anyPoll)[0] ?? (await s.stub.next(anyPoll));
    expect(poll.query).not.toContain("domain");
  });

  it("[C-POLL-15, C-POLL-20] waits at the server as long as configured, and never longer than servers allow", async () => {
    await using s = await setup({
      tasks: [task("a", () => null), task("b", () => null)],
      wire: { workers: { a: { pollTimeout: 250 }, b: { pollTimeout: "9s" } } },
    });
    await until(() => s.stub.seen(anyPoll).length >= 2);
    expect(s.stub.seen(pollOf("a"))[0]?.query).toContain("timeout=250");
    expect(s.stub.seen(pollOf("b"))[0]?.query).toContain("timeout=5000");
  });

  it("[C-POLL-10] skips entries without ids and continues", async () => {
    const seen: unknown[] = [];
    const good = { taskId: "t9", workflowInstanceId: "w", inputData: { n: 9 }, later: { field: 1 } };
    await using s = await setup({
      tasks: [task("greet", (input: unknown) => void seen.push(input))],
      slots: 5,
      before: (stub) => void stub.misbehave(anyPoll, json(200, [{ taskId: "" }, 7, null, { taskId: "x" }, good]), 1),
    });
    await until(() => seen.length === 1);
    expect(seen).toEqual([{ n: 9 }]);
    expect(s.notices.map(({ message }) => message).join()).toContain("4 entries without ids");
  });

  it("gives back a task of another type from a poll or an update, and calls no handler", async () => {
    const seen: unknown[] = [];
    const [other, later] = ["other", "later"].map((name) => ({
      ...{ taskId: name, workflowInstanceId: "w", taskType: "pay", taskDefName: "pay", inputData: { secret: name } },
    }));
    await using s = await setup({
      tasks: [task("greet", (input: unknown) => void seen.push(input))],
      slots: 3,
      before: (stub) => {
        const good = { taskId: "t9", workflowInstanceId: "w", taskType: "greet", inputData: { n: 9 } };
        stub.misbehave(anyPoll, json(200, [other, good]), 1);
        stub.misbehave(/^POST \/api\/tasks\/update-v2/, json(200, later), 1);
      },
    });
    const returned = () => s.stub.seen(/^POST \/api\/tasks$/).map(({ body }) => body as { taskId: string; status: string });
    await until(() => returned().length === 2);
    expect(
      returned()
        .map(({ taskId, status }) => [taskId, status])
        .sort(),
    ).toEqual([
      ["later", "IN_PROGRESS"],
      ["other", "IN_PROGRESS"],
    ]);
    expect(seen).toEqual([{ n: 9 }]);
    expect(s.notices.map(({ message }) => message).join()).toContain('given back: 1 of another type, such as other of "pay"');
  });

  it("[C-POLL-10] hands each received task to the handler, with its input", async () => {
    const seen: unknown[] = [];
    await using s = await setup({
      tasks: [task("greet", (input: unknown) => void seen.push(input))],
      slots: 3,
      before: (stub) => {
        for (const n of [1, 2, 3]) stub.enqueue("greet", { inputData: { n } });
      },
    });
    await until(() => s.stub.results.length === 3);
    expect(seen).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });
});

describe("capacity", () => {
  it("[C-POLL-17, C-POLL-04, C-PIT-01] is never exceeded by a request: 10, then 7 with 3 running, then 2 with 8, then none", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({
      tasks: [gated],
      wire: { concurrency: 10 },
      before: (stub) => enqueue(stub, "gated", 3),
    });
    await until(() => s.stub.seen(anyPoll).length >= 2);
    expect(counts(s.stub.seen(anyPoll)).slice(0, 2)).toEqual([10, 7]);
    for (let n = 0; n < 5; n++) s.stub.enqueue("gated");
    while (gates.length < 8) await s.clock.advance(1);
    await until(() => counts(s.stub.seen(anyPoll)).at(-1) === 2);
    s.stub.enqueue("gated");
    s.stub.enqueue("gated");
    while (gates.length < 10) await s.clock.advance(1);
    const polls = s.stub.seen(anyPoll).length;
    await s.clock.advance(5_000);
    expect(s.stub.seen(anyPoll)).toHaveLength(polls);
    expect(s.worker.status().slots).toEqual({ total: 10, free: 0 });
  });

  it("[C-CAP-01, C-PIT-03, C-UPD-06] is used until the update has succeeded, including its retries", async () => {
    await using s = await setup({
      tasks: [task("greet", () => ({ ok: true }))],
      before: (stub) => {
        stub.misbehave(anyUpdate, { status: 500 }, 2);
        stub.enqueue("greet");
      },
    });
    await until(() => s.stub.seen(anyUpdate).length === 1);
    const polls = s.stub.seen(anyPoll).length;
    await s.clock.armed(10_000, 2);
    await s.clock.advance(9_999);
    expect(s.stub.seen(anyPoll)).toHaveLength(polls);
    await s.clock.advance(1);
    await until(() => s.stub.seen(anyUpdate).length === 2);
    expect(s.stub.seen(anyPoll)).toHaveLength(polls);
    await s.clock.armed(20_000, 2);
    await s.clock.advance(20_000);
    await until(() => s.stub.seen(anyPoll).length > polls);
    expect(s.stub.results).toHaveLength(1);
  });

  it("[C-CAP-03, C-ARCH-04, C-CAP-02] runs as many tasks of one type at once as thread_count allows, independent of other types", async () => {
    const a = gatedTask("a");
    const b = gatedTask("b");
    await using s = await setup({
      tasks: [a.task, b.task],
      wire: { env: { CONDUCTOR_WORKER_A_THREAD_COUNT: "3", CONDUCTOR_WORKER_B_THREAD_COUNT: "2" } },
      before: (stub) => {
        for (let n = 0; n < 6; n++) stub.enqueue("a");
        for (let n = 0; n < 6; n++) stub.enqueue("b");
      },
    });
    await until(() => a.gates.length === 3 && b.gates.length === 2);
    expect(counts(s.stub.seen(pollOf("a")))).toEqual([3]);
    expect(counts(s.stub.seen(pollOf("b")))).toEqual([2]);
    expect(s.worker.status().slots).toEqual({ total: 5, free: 0 });
  });

  it("[C-POLL-03, C-PERF-02] that is used up causes no request and no timer until a task ends, and then a poll at once", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({
      tasks: [gated],
      wire: { updateV2: false, leaseExtend: false },
      before: (stub) => enqueue(stub, "gated", 2),
    });
    await until(() => gates.length === 1);
    // The only timer within a day is the one that watches the event loop.
    await s.clock.advance(0);
    expect(s.stub.seen(anyPoll)).toHaveLength(1);
    await s.clock.advance(60_000);
    expect(s.stub.seen(anyPoll)).toHaveLength(1);
    gates[0]?.();
    await until(() => gates.length === 2);
    expect(s.stub.seen(anyPoll)).toHaveLength(2);
  });

  it("[C-PERF-01] is filled with few polls: polls for one task each would be ten times as many", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({
      tasks: [gated],
      wire: { concurrency: 10, updateV2: false },
      before: (stub) => enqueue(stub, "gated", 30),
    });
    for (const round of [10, 20, 30]) {
      await until(() => gates.length === round);
      const polls = s.stub.seen(anyPoll).length;
      // All tasks end in one turn. The first poll may request fewer tasks than the second.
      for (const gate of gates.slice(round - 10)) gate();
      await until(() => s.stub.results.length === round);
      if (round < 30) await until(() => s.stub.seen(anyPoll).length > polls);
    }
    await until(() => s.stub.results.length === 30);
    expect(s.stub.seen(anyPoll).length).toBeLessThan(15);
  });

  it("requests at most a hundred at a time, and again at once for the rest", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({
      tasks: [gated],
      slots: 130,
      before: (stub) => enqueue(stub, "gated", 130),
    });
    await until(() => gates.length === 130);
    expect(counts(s.stub.seen(anyPoll))).toEqual([100, 30]);
  });

  it("[C-POLL-02, C-CAP-04, C-POLL-08] is used again at once when a task has ended, and right after tasks were received", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({
      tasks: [gated],
      wire: { concurrency: 2, updateV2: false },
      before: (stub) => void stub.enqueue("gated"),
    });
    // The second poll follows without any time passing; the third waits for the clock.
    await until(() => s.stub.seen(anyPoll).length === 2);
    await s.clock.armed(1);
    gates[0]?.();
    await until(() => s.stub.seen(anyPoll).length === 3);
    expect(counts(s.stub.seen(anyPoll))).toEqual([2, 1, 2]);
  });

  it("[C-POLL-21] is not exceeded when a server sends more tasks than requested: the rest waits", async () => {
    const { task: gated, gates } = gatedTask();
    const extra = [1, 2, 3, 4, 5].map((n) => ({ taskId: `t${n}`, workflowInstanceId: "w" }));
    await using s = await setup({
      tasks: [gated],
      wire: { concurrency: 2, updateV2: false },
      before: (stub) => {
        for (const { taskId } of extra) stub.tasks.set(taskId, { taskId, workflowInstanceId: "w", status: "IN_PROGRESS", pollCount: 1 });
        stub.misbehave(anyPoll, json(200, extra), 1);
      },
    });
    await until(() => gates.length === 2);
    gates[0]?.();
    await until(() => gates.length === 3);
    expect(s.stub.seen(anyPoll)).toHaveLength(1);
    for (let n = 1; n < 5; n++) {
      await until(() => gates.length > n);
      gates[n]?.();
    }
    await until(() => s.stub.results.length === 5);
    expect(s.stub.results.map(({ taskId }) => taskId).sort()).toEqual(["t1", "t2", "t3", "t4", "t5"]);
  });

  it("is shared when the tasks could use more slots than there are: no task type keeps the slots by chaining updates", async () => {
    const order: string[] = [];
    const a = task("a", () => void order.push("a"));
    const b = task("b", () => void order.push("b"));
    await using s = await setup({
      tasks: [a, b],
      slots: 1,
      before: (stub) => {
        for (let n = 0; n < 5; n++) stub.enqueue("a");
        stub.enqueue("b");
      },
    });
    await until(() => order.length === 6);
    expect(order.indexOf("b")).toBeLessThan(4);
    expect(s.worker.status().slots.total).toBe(1);
  });
});

describe("empty polls", () => {
  it("[C-POLL-05, C-POLL-06] are followed by waits of 1, 2, 4, 8 ... ms, and of the poll interval from the tenth on", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { pollInterval: "5s" } });
    const started = s.clock.now();
    const at: number[] = [];
    for (let polls = 1; polls <= 12; polls++) {
      await until(() => s.stub.seen(anyPoll).length === polls);
      at.push(s.clock.now() - started);
      await s.clock.armed(5_000);
      await s.clock.advance((s.clock.nextAtMs as number) - s.clock.now());
    }
    expect(at.slice(1).map((ms, n) => ms - (at[n] as number))).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 5_000, 5_000]);
  });

  it("never wait longer than a short poll interval", () => {
    expect([1, 5, 9, 10, 50].map((count) => emptyWaitMs(count, 10))).toEqual([1, 10, 10, 10, 10]);
  });

  it("[C-POLL-07] are counted again from one when a task arrives", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { updateV2: false } });
    for (let polls = 1; polls <= 5; polls++) {
      await until(() => s.stub.seen(anyPoll).length === polls);
      await s.clock.armed(100);
      if (polls < 5) await s.clock.advance(2 ** (polls - 1));
    }
    s.stub.enqueue("greet");
    await s.clock.advance(16);
    await until(() => s.stub.results.length === 1);
    // An empty poll has followed at once. Its wait is the first one again.
    await until(() => s.stub.seen(anyPoll).length === 7);
    await s.clock.armed(1);
    expect((s.clock.nextAtMs as number) - s.clock.now()).toBe(1);
  });

  it("wait at the server for up to five seconds for a single task, unless the user set it", async () => {
    const { task: gated, gates } = gatedTask();
    await using s = await setup({ tasks: [gated], wire: { pollTimeout: undefined as never, concurrency: 4 }, stub: { longPolls: true } });
    await until(() => s.stub.heldPolls === 1);
    s.stub.releasePolls();
    await s.clock.armed(1);
    await s.clock.advance(1);
    await until(() => s.stub.seen(anyPoll).length >= 2 && s.stub.heldPolls === 1);
    expect(
      s.stub
        .seen(anyPoll)
        .map(({ query }) => query)
        .slice(0, 2),
    ).toEqual(["workerid=w1&count=4&timeout=100", "workerid=w1&count=1&timeout=5000"]);
    s.stub.enqueue("gated");
    await until(() => gates.length === 1);
    // There may be more tasks, so the next poll requests all free slots at once.
    await until(() => s.stub.seen(anyPoll).length === 3);
    expect(s.stub.seen(anyPoll)[2]?.query).toBe("workerid=w1&count=3&timeout=100");
  });

  it("that a server answers too early are followed by the usual waits, although the server should have waited", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { pollTimeout: undefined as never } });
    for (let polls = 1; polls <= 6; polls++) {
      await until(() => s.stub.seen(anyPoll).length === polls);
      await s.clock.armed(100);
      await s.clock.advance(2 ** (polls - 1));
    }
    expect(s.stub.seen(anyPoll)[3]?.query).toBe("workerid=w1&count=1&timeout=5000");
  });
});

describe("several task types", () => {
  it("[C-POLL-19, C-ARCH-13] are polled by one worker at the same time, and several workers share the tasks of one type", async () => {
    const seen: string[] = [];
    const make = (name: string) => task(name, () => void seen.push(name));
    await using s = await setup({
      tasks: [make("a"), make("b"), make("c")],
      before: (stub) => {
        for (const type of ["a", "b", "c", "a"]) stub.enqueue(type);
      },
    });
    await until(() => seen.length === 4);
    expect(seen.sort()).toEqual(["a", "a", "b", "c"]);
    const again = await work({
      tasks: [make("a")],
      on: conductor(s.stub.url, { env: {}, outbox: false, workerId: "w2" }),
      signals: false,
      logger: false,
    });
    for (let n = 0; n < 20; n++) s.stub.enqueue("a");
    await until(() => s.stub.results.length === 24);
    expect(new Set(s.stub.results.slice(4).map(({ workerId }) => workerId))).toContain("w2");
    await again.stop({ force: true });
  });
});
