// Special cases of the poll loop: pausing, servers that refuse or fail, and the reported events.

import { describe, expect, it } from "vitest";
import { anyPoll, json, pollOf, updateV1 } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { heldTask } from "../../../../test/support/reference-worker.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

describe("pausing", () => {
  it("[C-POLL-12, C-POLL-13] by the environment prevents all requests until the worker is resumed at run time", async () => {
    const events: string[] = [];
    await using s = await setup({
      tasks: [task("greet", () => null), task("other", () => null)],
      wire: { env: { "conductor.worker.greet.paused": "true" } },
      before: (stub) => void stub.enqueue("greet"),
    });
    s.worker.on("resumed", ({ task: name }) => void events.push(`resumed ${name}`));
    s.worker.on("paused", ({ task: name }) => void events.push(`paused ${name}`));
    await until(() => s.stub.seen(pollOf("other")).length > 0);
    await s.clock.advance(60_000);
    expect(s.stub.seen(pollOf("greet"))).toEqual([]);
    s.transport.resume("greet");
    await until(() => s.stub.results.length === 1);
    s.transport.pause();
    await until(() => events.length === 3);
    expect(events).toEqual(["resumed greet", "paused greet", "paused other"]);
    expect(() => s.transport.pause("nobody")).toThrow(/No task is named "nobody"/);
  });

  it("[C-V2-09] lets running tasks end, with updates that return no new task", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], before: (stub) => void stub.enqueue("held") });
    await held.started;
    s.stub.enqueue("held");
    s.transport.pause();
    held.resolve({ fine: true });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(updateV1)).toHaveLength(1);
    const polls = s.stub.seen(anyPoll).length;
    await s.clock.advance(60_000);
    expect(s.stub.seen(anyPoll)).toHaveLength(polls);
  });
});

describe("failing polls", () => {
  it("[C-AUTH-01, C-AUTH-02, C-AUTH-05] that are refused are repeated after 2, 4, 8 ... 60 s; the reports have the count and where to look", async () => {
    await using s = await setup({
      tasks: [task("greet", () => null)],
      before: (stub) => void stub.misbehave(anyPoll, json(401, { error: "UNAUTHORIZED", message: "who?" })),
    });
    for (const [polls, waitMs] of [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000].entries()) {
      await until(() => s.stub.seen(anyPoll).length === polls + 1);
      await s.clock.armed(waitMs);
      await s.clock.advance(waitMs - 1);
      expect(s.stub.seen(anyPoll)).toHaveLength(polls + 1);
      await s.clock.advance(1);
    }
    const told = s.notices.map(({ message }) => message).filter((message) => message.includes("in a row"));
    expect(told[1]).toContain("refused 3 times in a row");
    expect(told[1]).toContain("CONDUCTOR_AUTH_KEY");
    expect(told).toHaveLength(5);
  });

  it("[C-AUTH-03, C-AUTH-04] reset the count of refusals after any valid response, even an empty one", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], before: (stub) => void stub.misbehave(anyPoll, { status: 403 }, 2) });
    await until(() => s.stub.seen(anyPoll).length === 1);
    await s.clock.armed(2_000);
    await s.clock.advance(2_000);
    await until(() => s.stub.seen(anyPoll).length === 2);
    await s.clock.armed(4_000);
    await s.clock.advance(4_000);
    await until(() => s.stub.seen(anyPoll).length === 3);
    s.stub.misbehave(anyPoll, { status: 403 }, 1);
    await s.clock.armed(1);
    await s.clock.advance(1);
    await until(() => s.stub.seen(anyPoll).length === 4);
    await s.clock.armed(2_000);
    await s.clock.advance(1_999);
    expect(s.stub.seen(anyPoll)).toHaveLength(4);
    await s.clock.advance(1);
    await until(() => s.stub.seen(anyPoll).length === 5);
  });

  it.each([
    ["a 500", { status: 500, body: "oops" }],
    ["HTML", { status: 200, body: "<html>busy</html>" }],
    ["an object", { status: 200, body: "{}" }],
    ["a cut connection", "cut"],
    ["half an answer", "half"],
  ] as const)(
    "[C-POLL-18, C-POLL-11, C-ERR-01] by %s wait 2, 4, 8 s and a little more, are reported once, and end",
    async (_name, answer) => {
      await using s = await setup({ tasks: [task("greet", () => ({ ok: true }))] });
      await until(() => s.stub.seen(anyPoll).length === 1);
      const heal = s.stub.misbehave(anyPoll, answer);
      await s.clock.armed(1);
      await s.clock.advance(1);
      for (const waitMs of [2_000, 4_000, 8_000]) {
        await s.clock.armed(waitMs * 1.2);
        const polls = s.stub.seen(anyPoll).length;
        await s.clock.advance(waitMs - 1);
        expect(s.stub.seen(anyPoll)).toHaveLength(polls);
        await s.clock.advance(waitMs * 0.2 + 1);
        await until(() => s.stub.seen(anyPoll).length > polls);
      }
      heal();
      s.stub.enqueue("greet");
      await s.clock.armed(20_000);
      await s.clock.advance(20_000);
      await until(() => s.stub.results.length === 1);
      const told = s.notices.filter(({ message }) => message.includes("poll of greet"));
      expect(told.map(({ level }) => level)).toEqual(["warn", "info"]);
    },
  );

  it("[C-ARCH-07, C-ERR-02] continue when a server that was down is back", async () => {
    await using s = await setup({ tasks: [task("greet", () => ({ ok: true }))] });
    await until(() => s.stub.seen(anyPoll).length === 1);
    await s.stub.close();
    await s.clock.armed(1);
    await s.clock.advance(1);
    await until(() => s.notices.some(({ level }) => level === "warn"));
    await s.stub.listen();
    s.stub.enqueue("greet");
    await s.clock.armed(3_000);
    await s.clock.advance(3_000);
    await until(() => s.stub.results.length === 1);
  });
});

describe("execution events", () => {
  it("[C-EXEC-03, C-EXEC-09, C-EXEC-12] carry the ids of task, workflow and worker, the time and size, or the cause", async () => {
    const told: unknown[] = [];
    const greet = task("greet", ({ n }: { n: number }) => {
      if (n === 2) throw new RangeError("too many");
      return { ok: true };
    });
    await using s = await setup({ tasks: [greet], wire: { paused: true } });
    const common = (event: { task: string; worker: string | undefined; ids: { taskId: string; runId: string } }) => [
      event.task,
      event.worker,
      event.ids.taskId,
      event.ids.runId,
    ];
    s.worker.on("executionStarted", (event) => void told.push(["started", ...common(event)]));
    s.worker.on("executionCompleted", (event) => void told.push(["completed", ...common(event), event.durationMs, event.outputBytes]));
    s.worker.on("executionFailed", (event) => void told.push(["failed", ...common(event), event.durationMs, event.error.message]));
    s.stub.enqueue("greet", { inputData: { n: 1 } });
    s.stub.enqueue("greet", { inputData: { n: 2 } });
    s.transport.resume();
    await until(() => told.length === 4);
    expect(told).toEqual([
      ["started", "greet", "w1", "task-1", "wf-1"],
      ["completed", "greet", "w1", "task-1", "wf-1", 0, 11],
      ["started", "greet", "w1", "task-2", "wf-2"],
      ["failed", "greet", "w1", "task-2", "wf-2", 0, "too many"],
    ]);
  });
});

describe("poll events", () => {
  it("[C-POLL-16] are sent before and after each poll, with the requested and received counts, or the error", async () => {
    const told: unknown[] = [];
    const received = deferred<void>();
    await using s = await setup({ tasks: [task("greet", () => null)], wire: { concurrency: 3, paused: true } });
    s.worker.on("pollStarted", ({ task: name, worker, count }) => void told.push({ name, worker, count }));
    s.worker.on("pollCompleted", ({ received: n }) => {
      told.push({ received: n });
      if (n === 0) received.resolve();
    });
    s.stub.enqueue("greet");
    s.transport.resume();
    await received.promise;
    expect(told.slice(0, 2)).toEqual([{ name: "greet", worker: "w1", count: 3 }, { received: 1 }]);
    const failed = new Promise((resolve) => s.worker.on("pollFailed", resolve));
    s.stub.misbehave(anyPoll, { status: 500 }, 1);
    await s.clock.armed(1);
    await s.clock.advance(1);
    expect(await failed).toMatchObject({
      task: "greet",
      worker: "w1",
      durationMs: expect.any(Number),
      error: { message: expect.stringContaining("500") },
    });
  });
});
