// Events at a fixed time without a request: deadlines, and the two budgets of retries.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, policy, termMs } from "./world.ts";

export function deadlineContract(setup: Setup): void {
  describe("deadlines", () => {
    it("end a hold when the clock reaches its term, and the attempt counts as lost", async () => {
      const { clock, post, claim, task } = await setup();
      await post("t", { policy: policy({ lost: 1 }) });
      await claim();
      await clock.advance(termMs - 1);
      expect(await task("t")).toMatchObject({ state: "held", attempt: 0 });
      await clock.advance(1);
      expect(await task("t")).toMatchObject({ state: "queued", attempt: 1, grant: 2, lost: 1, failures: 0, closedBy: "expire" });
    });

    it("refuse reports from the end of the term on, even before the sweep", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      clock.jump(termMs);
      expect(await board.complete(hold, "1")).toBe("stale");
      expect((await board.extend(hold)).verdict).toBe("stale");
      expect((await task("t")).state).toBe("held");
      await clock.advance(0);
      expect((await task("t")).state).toBe("queued");
      expect(await board.complete(hold, "1")).toBe("stale");
    });

    it("are due together when the clock is set forward, and a worker with a task from before loses its hold", async () => {
      const { clock, board, post, claim, task } = await setup();
      const tries = { policy: policy({ lost: 1 }) };
      await post("a", tries);
      await post("b", { ...tries, delayMs: 500_000 });
      const waiting = board.claim({ reach: { names: ["work"], labels: [] }, holder: "bob", termMs, waitMs: 600_000 });
      const hold = holdOf((await waiting)[0]);
      clock.jump(3_600_000);
      expect((await board.extend(hold)).verdict).toBe("stale");
      expect(await board.complete(hold, "1")).toBe("stale");
      await clock.advance(0);
      expect(await task("a")).toMatchObject({ state: "queued", lost: 1 });
      const again = holdOf(await claim());
      expect(again).toMatchObject({ taskId: "b" });
      expect(await claim()).toMatchObject({ id: "a", attempt: 1, grant: 3 });
      expect(await board.complete(hold, "1")).toBe("stale");
      expect(await board.complete(again, "1")).toBe("ok");
    });

    it("move with an extend", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      await clock.advance(600);
      await board.extend(hold);
      await clock.advance(999);
      expect((await task("t")).state).toBe("held");
      await clock.advance(1);
      expect((await task("t")).state).toBe("queued");
    });

    it("count failures and lost holds separately", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 1, lost: 2 }) });
      await claim();
      await clock.advance(termMs);
      await board.fail(holdOf(await claim()), { error: "boom", retryable: true });
      await claim();
      await clock.advance(termMs);
      expect(await task("t")).toMatchObject({ state: "queued", failures: 1, lost: 2, attempt: 3 });
      await claim();
      await clock.advance(termMs);
      expect(await task("t")).toMatchObject({ state: "failed", error: "lease expired", failures: 1, lost: 3 });
    });

    it("end only tasks that no worker took in time", async () => {
      const { clock, post, claim, task } = await setup();
      await post("a", { claimMs: 100, policy: policy({ failures: 9 }) });
      await post("b", { claimMs: 100, priority: -1 });
      await claim();
      await clock.advance(99);
      expect((await task("a")).state).toBe("queued");
      await clock.advance(1);
      expect(await task("a")).toMatchObject({ state: "failed", error: "timed out: no worker took it in time" });
      expect((await task("b")).state).toBe("held");
    });

    it("give a delayed task its whole time to be claimed, after its delay", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { claimMs: 100, delayMs: 500, policy: policy({ failures: 1, delayMs: 700 }) });
      await clock.advance(599);
      await board.fail(holdOf(await claim()), { error: "boom", retryable: true });
      await clock.advance(799);
      expect((await task("t")).state).toBe("queued");
      await clock.advance(1);
      expect((await task("t")).state).toBe("failed");
    });

    it("close an attempt that takes too long, also when it is extended often, as a failure", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { endMs: 1_500, policy: policy({ failures: 1, lost: 9 }) });
      const hold = holdOf(await claim());
      await clock.advance(800);
      await board.extend(hold);
      await clock.advance(699);
      expect((await task("t")).state).toBe("held");
      await clock.advance(1);
      expect(await task("t")).toMatchObject({ state: "queued", failures: 1, lost: 0 });
      const second = await claim();
      expect(second?.endBy).toBe(clock.now() + 1_500);
    });

    it("count the time of an attempt from its first hand-out, over deferrals", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { endMs: 1_500 });
      await board.defer(holdOf(await claim()), 1_000);
      await clock.advance(1_000);
      const again = await claim();
      expect(again?.endBy).toBe(clock.now() + 500);
      await clock.advance(500);
      expect(await task("t")).toMatchObject({ state: "failed", error: "timed out: the attempt took too long" });
    });

    it("end a task that takes too long in total, in any state and with any budget", async () => {
      const { clock, board, post, claim, task } = await setup();
      for (const id of ["queued", "held", "retried"])
        await post(id, { totalMs: 900, policy: policy({ failures: 9, lost: 9, delayMs: 5_000 }), priority: id === "queued" ? 9 : 0 });
      await claim();
      await board.fail(holdOf(await claim()), { error: "boom", retryable: true });
      await clock.advance(900);
      for (const id of ["queued", "held", "retried"])
        expect(await task(id)).toMatchObject({ state: "failed", error: "timed out: the task took too long" });
    });

    it("all fire when those of many tasks are due together", async () => {
      const { clock, board, task, claim } = await setup();
      const ids = Array.from({ length: 1_200 }, (_, at) => `t${at}`);
      await board.post(
        ids.map((id) => ({ id, step: "work", lanes: [{ name: "work", labels: [] }], input: "null", policy: null, claimMs: 100 })),
      );
      await clock.advance(100);
      for (const id of ids) expect((await task(id)).state).toBe("failed");
      expect(await claim()).toBeUndefined();
    });
  });
}
