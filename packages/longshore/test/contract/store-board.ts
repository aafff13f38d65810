// The verbs of the board, each with its refusals.

import { describe, expect, it } from "vitest";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { Setup } from "./store.ts";
import { holdOf, newTask, policy, termMs } from "./world.ts";

export function boardContract(setup: Setup): void {
  describe("claim and complete", () => {
    it("give a task to one holder, with a grant, until the end of its term", async () => {
      const { clock, post, claim } = await setup();
      await post("t", { input: '{"a":1}' });
      expect(await claim()).toMatchObject({
        id: "t",
        state: "held",
        holder: "ann",
        grant: 1,
        attempt: 0,
        input: '{"a":1}',
        holdUntil: clock.now() + termMs,
      });
      expect(await claim()).toBeUndefined();
    });

    it("do not change a task whose id is posted again, in any state", async () => {
      const { board, post, claim, task } = await setup();
      const again = { input: '"other"', lanes: [laneOf("elsewhere")] };
      await Promise.all([post("t"), post("t", again), post("u")]);
      await post("t", again);
      expect(await task("t")).toMatchObject({ state: "queued", input: "null", lane: { name: "work" } });
      const hold = holdOf(await claim());
      await post("t", again);
      expect(await task("t")).toMatchObject({ state: "held", grant: hold.grant });
      expect(await board.complete(hold, '"fine"')).toBe("ok");
      // Together with others in the same batch, which it must not delay.
      await Promise.all([post("v"), post("t", again), board.post([newTask("w"), newTask("t", again), newTask("x")])]);
      expect(await task("t")).toMatchObject({ state: "done", output: '"fine"', input: "null" });
      expect(await claim("elsewhere")).toBeUndefined();
      expect([await claim(), await claim(), await claim(), await claim(), await claim()].map((each) => each?.id)).toEqual([
        ...["u", "v", "w", "x", undefined],
      ]);
    });

    it("hand out as many as were requested, and no more than there are", async () => {
      const { board, post } = await setup();
      for (const id of ["a", "b", "c"]) await post(id);
      const ask = async (max: number) =>
        (await board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs, max })).map((task) => task.id);
      expect(await ask(2)).toEqual(["a", "b"]);
      expect(await ask(2)).toEqual(["c"]);
      expect(await ask(2)).toEqual([]);
    });

    it("store the output, and answer repeated and other reports according to what was applied", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      expect(await board.complete(hold, '"fine"')).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "done", output: '"fine"', closedBy: "complete" });
      expect(await board.complete(hold, '"other"')).toBe("again");
      expect(await board.fail(hold, { error: "no", retryable: true })).toBe("stale");
      expect((await board.extend(hold)).verdict).toBe("stale");
      expect(await task("t")).toMatchObject({ state: "done", output: '"fine"' });
    });

    it("merge the output with the parts that were sent before, when requested", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      await board.extend(hold, { output: '{"a":1,"b":1}' });
      await board.complete(hold, '{"b":2}', { merge: true });
      expect((await task("t")).output).toBe('{"a":1,"b":2}');
    });

    it("refuse a report of another holder, and unknown tasks", async () => {
      const { board, post, claim } = await setup();
      await post("t");
      const held = await claim();
      expect(await board.complete({ taskId: "t", grant: held?.grant, holder: "bob" }, "1")).toBe("busy");
      expect(await board.complete({ taskId: "nobody" }, "1")).toBe("gone");
      expect(await board.complete({ taskId: "t", grant: 2 }, "1")).toBe("gone");
      expect((await board.extend({ taskId: "nobody" })).verdict).toBe("gone");
      expect(await board.cancel("nobody")).toBe(false);
    });

    it("accept a report with only the task's id, from protocols that send no more", async () => {
      const { board, post, task } = await setup();
      await post("t");
      expect(await board.complete({ taskId: "t" }, "1")).toBe("ok");
      expect((await task("t")).state).toBe("done");
    });

    it("resolve calls that wait for the result", async () => {
      const { board, post, claim } = await setup();
      await post("t");
      const result = board.result("t");
      await board.complete(holdOf(await claim()), "42");
      expect(await result).toMatchObject({ state: "done", output: "42" });
      expect(await board.result("t")).toMatchObject({ state: "done" });
      expect(await board.result("nobody")).toBeUndefined();
    });
  });

  describe("fail", () => {
    it("uses the budget of lost holds for a failure that was not the task's fault", async () => {
      const { board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 0, lost: 1 }) });
      const report = { error: "nobody answered", retryable: true, spends: "lost" as const, output: '{"port":1}' };
      expect(await board.fail(holdOf(await claim()), report)).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 1, failures: 0, lost: 1 });
      expect(await board.fail(holdOf(await claim()), report)).toBe("ok");
      const ended = { state: "failed", fault: "lost", error: "nobody answered", output: '{"port":1}', failures: 0, lost: 2 };
      expect(await task("t")).toMatchObject(ended);
    });

    it("retries after the backoff, not before, with a new attempt and a new grant", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 1, delayMs: 500 }) });
      const first = await claim();
      expect(await board.fail(holdOf(first), { error: "boom", retryable: true })).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 1, failures: 1, lost: 0, holder: null });
      await clock.advance(499);
      expect(await claim()).toBeUndefined();
      await clock.advance(1);
      const second = await claim();
      expect(second).toMatchObject({ id: "t", attempt: 1, grant: 3 });
      expect(await board.fail(holdOf(first), { error: "boom", retryable: true })).toBe("again");
      expect(await board.complete(holdOf(first), "1")).toBe("stale");
      expect(await board.fail(holdOf(second), { error: "boom again", retryable: true })).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "failed", error: "boom again", failures: 2 });
      expect(await board.fail(holdOf(first), { error: "boom", retryable: true })).toBe("again");
    });

    it("ends a task at once after a final failure", async () => {
      const { board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 5 }) });
      await board.fail(holdOf(await claim()), { error: "never", retryable: false });
      expect(await task("t")).toMatchObject({ state: "failed", error: "never" });
    });

    it("waits as long as the report requests", async () => {
      const { clock, board, post, claim } = await setup();
      await post("t", { policy: policy({ failures: 1, delayMs: 9_000 }) });
      await board.fail(holdOf(await claim()), { error: "later", retryable: true, delayMs: 20 });
      await clock.advance(20);
      expect(await claim()).toMatchObject({ id: "t" });
    });

    it("counts attempts of a task that fails without a hand-out", async () => {
      const { board, post, task } = await setup();
      await post("t", { policy: policy({ failures: 2 }) });
      const fail = (attempt: number) => board.fail({ taskId: "t", attempt }, { error: "refused", retryable: true });
      expect([await fail(0), await fail(1), await fail(1), await fail(2)]).toEqual(["ok", "ok", "again", "ok"]);
      expect(await task("t")).toMatchObject({ state: "failed", failures: 3, attempt: 2 });
    });

    it("keeps an error readable that has characters which stored texts must not have", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      await board.fail(holdOf(await claim()), { error: "before\u0000after", retryable: false });
      expect((await task("t")).error).toBe("before\ufffdafter");
    });
  });

  describe("defer", () => {
    it("queues the task again after its delay, in the same attempt, without using a budget", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      expect(await board.defer(hold, 300, '{"seen":1}')).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 0, failures: 0, lost: 0, output: '{"seen":1}' });
      expect(await board.defer(hold, 300)).toBe("again");
      await clock.advance(299);
      expect(await claim()).toBeUndefined();
      await clock.advance(1);
      expect(await claim()).toMatchObject({ id: "t", attempt: 0, grant: 3, output: '{"seen":1}' });
    });

    it("is counted for each attempt, except when the task is returned unseen", async () => {
      const { board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 1 }) });
      await board.defer(holdOf(await claim()), 0);
      await board.defer(holdOf(await claim()), 0);
      await board.giveBack(holdOf(await claim()));
      expect(await task("t")).toMatchObject({ attempt: 0, deferrals: 2 });
      await board.fail(holdOf(await claim()), { error: "no", retryable: true });
      expect(await task("t")).toMatchObject({ attempt: 1, deferrals: 0 });
    });

    it("gives a task back at once, and its old hold is no longer valid", async () => {
      const { board, post, claim } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      expect(await board.giveBack(hold)).toBe("ok");
      const next = await claim("work", { holder: "bob" });
      expect(next).toMatchObject({ id: "t", holder: "bob", grant: 3 });
      expect(await board.complete(hold, "1")).toBe("stale");
      expect(await board.complete(holdOf(next), "1")).toBe("ok");
    });
  });

  describe("extend", () => {
    it("gives a hold the duration that its holder requests, from then on, but no more than the task allows", async () => {
      const { clock, store, board, post, claim } = await setup();
      await post("t", { holdMs: 5_000 });
      const hold = holdOf(await claim("work", { termMs: 300 }));
      const before = store.commits();
      expect((await board.extend(hold, { termMs: 2_000 })).holdUntil).toBe(clock.now() + 2_000);
      expect((await board.extend(hold, { termMs: 2_000 })).holdUntil).toBe(clock.now() + 2_000);
      expect(store.commits() - before).toBe(1);
      await clock.advance(1_999);
      expect((await board.extend(hold)).holdUntil).toBe(clock.now() + 2_000);
      expect((await board.extend(hold, { termMs: 60_000 })).holdUntil).toBe(clock.now() + 5_000);
      expect((await board.extend(hold, { termMs: 100 })).holdUntil).toBe(clock.now() + 100);
      await clock.advance(100);
      expect((await board.extend(hold)).verdict).toBe("stale");
    });

    it("accepts an offer for the duration that its holder requests", async () => {
      const { clock, board, post } = await setup();
      await post("t");
      const [offered] = await board.offer({ reach: { names: ["work"], labels: [] }, termMs, offerMs: 50 });
      const taken = await board.extend(holdOf(offered), { holder: "ann", termMs: 7_000 });
      expect(taken).toEqual({ verdict: "ok", holdUntil: clock.now() + 7_000 });
    });

    it("renews a hold by its own term, any number of times", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim("work", { termMs: 300 }));
      for (let beat = 0; beat < 10; beat++) {
        await clock.advance(250);
        expect(await board.extend(hold)).toEqual({ verdict: "ok", holdUntil: clock.now() + 300 });
      }
      expect((await task("t")).state).toBe("held");
      await clock.advance(300);
      expect((await board.extend(hold)).verdict).toBe("stale");
    });

    it("keeps the last report as the output so far", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      await board.extend(hold, { output: "1" });
      await board.extend(hold, { output: "2" });
      await board.extend(hold);
      expect(await task("t")).toMatchObject({ state: "held", output: "2" });
    });

    it("refuses older grants and other holders", async () => {
      const { board, post, claim } = await setup();
      await post("t");
      const old = holdOf(await claim());
      await board.giveBack(old);
      const held = await claim("work", { holder: "bob" });
      expect(await board.extend(old)).toEqual({ verdict: "stale", holdUntil: null });
      expect(await board.extend({ taskId: "t", grant: held?.grant, holder: "ann" })).toEqual({ verdict: "busy", holdUntil: null });
    });

    it("for a queued task changes only its part", async () => {
      const { board, post, claim } = await setup();
      await post("t");
      expect(await board.extend({ taskId: "t" }, { output: "1", holder: "ann" })).toEqual({ verdict: "ok", holdUntil: null });
      expect(await claim("work", { holder: "bob" })).toMatchObject({ id: "t", holder: "bob", output: "1" });
    });
  });
}
