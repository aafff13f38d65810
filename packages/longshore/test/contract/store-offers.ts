// Offers of the board: tasks that wait until a holder accepts them.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, policy, termMs } from "./world.ts";

export function offerContract(setup: Setup): void {
  describe("offer", () => {
    const reach = { names: ["work"], labels: [] };

    it("makes the worker that extends first the holder", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      const [offered] = await board.offer({ reach, termMs });
      expect(offered).toMatchObject({ id: "t", state: "offered", holder: null, grant: 1 });
      expect(await claim()).toBeUndefined();
      expect((await board.extend({ taskId: "t", grant: 1 }, { holder: "ann" })).verdict).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "held", holder: "ann", grant: 1 });
      expect((await board.extend({ taskId: "t", grant: 1, holder: "bob" }, { holder: "bob" })).verdict).toBe("busy");
    });

    it("can be completed by a worker that never extended", async () => {
      const { board, post, task } = await setup();
      await post("t");
      const [offered] = await board.offer({ reach, termMs });
      expect(await board.complete(holdOf(offered), "1")).toBe("ok");
      expect((await task("t")).state).toBe("done");
    });

    it("begins the attempt when a worker accepts it, not when it is made", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { endMs: 1_500, policy: policy({}) });
      const [offered] = await board.offer({ reach, termMs });
      expect(offered).toMatchObject({ startedAt: null, endBy: null, claimedAt: clock.now() });
      await clock.advance(termMs - 1);
      await board.extend(holdOf(offered), { holder: "ann" });
      const beganAt = clock.now();
      expect(await task("t")).toMatchObject({ startedAt: beganAt, claimedAt: beganAt, endBy: beganAt + 1_500 });
      await clock.advance(termMs - 1);
      await board.extend({ taskId: "t", grant: 1, holder: "ann" });
      await clock.advance(501);
      expect(await task("t")).toMatchObject({ state: "failed", fault: "timed-out", holder: "ann" });
    });

    it("counts from when it was made for a worker that reports without an extend", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { policy: policy({ failures: 1 }) });
      const madeAt = clock.now();
      const [offered] = await board.offer({ reach, termMs });
      await clock.advance(10);
      await board.fail(holdOf(offered), { error: "no", retryable: true });
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 1, failures: 1, startedAt: null });
      const [again] = await board.offer({ reach, termMs });
      await board.complete(holdOf(again), "1", { by: "ann" });
      expect(await task("t")).toMatchObject({ state: "done", startedAt: madeAt + 10, holder: "ann" });
    });

    it("that no worker accepts returns to its place at the end of its term, without using a budget", async () => {
      const { clock, board, post, task, claim } = await setup();
      await post("t", { policy: policy({}) });
      await post("later");
      const [offered] = await board.offer({ reach, termMs });
      await clock.advance(termMs - 1);
      expect((await task("t")).state).toBe("offered");
      await clock.advance(1);
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 0, lost: 0, failures: 0, deferrals: 0, grant: 2, startedAt: null });
      expect((await board.extend(holdOf(offered), { holder: "ann" })).verdict).toBe("stale");
      expect(await board.complete(holdOf(offered), "1")).toBe("stale");
      expect([(await claim())?.id, (await claim())?.id]).toEqual(["t", "later"]);
    });

    it("may wait longer to be accepted than a hold lasts", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { holdMs: termMs });
      const [offered] = await board.offer({ reach, termMs: 60_000, offerMs: 5_000 });
      expect(offered).toMatchObject({ holdUntil: clock.now() + 5_000, termMs });
      await clock.advance(4_999);
      expect(await board.extend(holdOf(offered), { holder: "ann" })).toEqual({ verdict: "ok", holdUntil: clock.now() + termMs });
      await clock.advance(termMs);
      expect(await task("t")).toMatchObject({ state: "queued", lost: 1 });
      const [again] = await board.offer({ reach, termMs, offerMs: 5_000 });
      await clock.advance(5_000);
      expect(await task("t")).toMatchObject({ state: "queued", lost: 1, grant: (again?.grant ?? 0) + 1 });
    });

    it("does not extend the time in which a worker must take the task", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { claimMs: 2_500, policy: policy({ failures: 3, lost: 3 }) });
      for (const queuedFor of [0, termMs, 2 * termMs]) {
        expect(await board.offer({ reach, termMs })).toMatchObject([{ id: "t", claimBy: clock.now() - queuedFor + 2_500 }]);
        await clock.advance(queuedFor === 2 * termMs ? 499 : termMs);
      }
      expect((await task("t")).state).toBe("offered");
      await clock.advance(1);
      expect(await task("t")).toMatchObject({ state: "failed", fault: "timed-out", error: expect.stringContaining("no worker took it") });
    });

    it("that ended together with the claim deadline while nothing ran does not return", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { claimMs: 2_500 });
      await board.offer({ reach, termMs });
      clock.jump(3_000);
      await clock.advance(0);
      expect(await task("t")).toMatchObject({ state: "failed", fault: "timed-out", grant: 1 });
    });

    it("that is given back is queued again: at its place, and with its full time to be taken", async () => {
      const { clock, board, post, task, claim } = await setup();
      await post("t", { claimMs: 2_000 });
      await post("later");
      const [offered] = await board.offer({ reach, termMs });
      await clock.advance(900);
      expect(await board.giveBack(holdOf(offered))).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "queued", deferrals: 0, claimBy: clock.now() + 2_000 });
      expect((await claim())?.id).toBe("t");
    });

    it("that is given back again and again has three times its time to be taken in total", async () => {
      const { clock, board, post, task } = await setup();
      await post("t", { claimMs: 2_000, delayMs: 5_000 });
      await clock.advance(5_000);
      const dueAt = clock.now();
      for (let at = 0; at < 5; at++) {
        const [offered] = await board.offer({ reach, termMs });
        await clock.advance(900);
        await board.giveBack(holdOf(offered));
        expect((await task("t")).claimBy).toBe(Math.min(clock.now() + 2_000, dueAt + 6_000));
      }
      await clock.advance(1_500);
      expect(await task("t")).toMatchObject({ state: "failed", fault: "timed-out" });
    });

    it("can be taken back, except when a worker has accepted it", async () => {
      const { board, post, task, claim } = await setup();
      await post("t");
      await post("later");
      const [taken] = await board.offer({ reach, termMs });
      const [left] = await board.offer({ reach, termMs });
      await board.extend(holdOf(taken), { holder: "ann" });
      expect([await board.retract(holdOf(taken)), await board.retract(holdOf(left))]).toEqual(["busy", "ok"]);
      expect(await task("t")).toMatchObject({ state: "held", holder: "ann", grant: 1 });
      expect(await task("later")).toMatchObject({ state: "queued", deferrals: 0, lost: 0 });
      await board.complete({ taskId: "t", grant: 1 }, "1");
      expect(await board.retract(holdOf(taken))).toBe("stale");
      expect((await claim())?.id).toBe("later");
    });

    it("keeps its permit as long as it lasts", async () => {
      const { clock, board, post } = await setup();
      const limits = [{ key: "api", held: 1 }];
      await post("a", { limits });
      await post("b", { limits });
      expect(await board.offer({ reach, termMs, max: 2 })).toMatchObject([{ id: "a" }]);
      expect(await board.offer({ reach, termMs })).toEqual([]);
      await clock.advance(termMs);
      expect(await board.offer({ reach, termMs, max: 2 })).toMatchObject([{ id: "a", grant: 3 }]);
    });
  });
}
