// Cancelling a task, in every state that it may be in.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, policy, termMs } from "./world.ts";

export function cancelContract(setup: Setup): void {
  describe("cancelling", () => {
    it("a queued task ends it: no worker gets it", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      expect(await board.cancel("t")).toBe(true);
      expect(await claim()).toBeUndefined();
      expect(await task("t")).toMatchObject({ state: "cancelled", closedBy: "cancel" });
      expect(await board.cancel("t")).toBe(false);
    });

    it("a delayed task ends it before its time", async () => {
      const { clock, board, post, claim } = await setup();
      await post("t", { delayMs: 100 });
      await board.cancel("t");
      await clock.advance(200);
      expect(await claim()).toBeUndefined();
    });

    it("an offered task ends it, and its worker gets the verdict stale", async () => {
      const { board, post, task } = await setup();
      await post("t");
      const [offered] = await board.offer({ reach: { names: ["work"], labels: [] }, termMs });
      expect(await board.cancel("t")).toBe(true);
      expect((await task("t")).state).toBe("cancelled");
      expect((await board.extend(holdOf(offered))).verdict).toBe("stale");
    });

    it("by the holder itself ends the task at once, with its reason and without another attempt", async () => {
      const { board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 3 }) });
      const held = await claim();
      expect(await board.withdraw(holdOf(held), { error: "called off", output: '{"seen":1}' })).toBe("ok");
      expect(await task("t")).toMatchObject({ state: "cancelled", closedBy: "cancel", error: "called off", output: '{"seen":1}' });
      expect(await claim()).toBeUndefined();
      expect(await board.withdraw(holdOf(held), { error: "again" })).toBe("stale");
      expect((await task("t")).error).toBe("called off");
    });

    it("a held task notifies its holder with the next extend, which does not renew the hold", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t");
      const held = await claim();
      expect(await board.cancel("t")).toBe(true);
      expect(await board.cancel("t")).toBe(false);
      await clock.advance(500);
      expect(await board.extend(holdOf(held))).toEqual({ verdict: "cancel", holdUntil: held?.holdUntil });
      expect((await task("t")).state).toBe("cancelling");
    });

    it.each(["complete", "fail", "defer"] as const)("a held task ends as cancelled when its holder reports %s", async (verb) => {
      const { board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 9, lost: 9 }) });
      const hold = holdOf(await claim());
      await board.cancel("t");
      const report = () => {
        if (verb === "complete") return board.complete(hold, "1");
        return verb === "fail" ? board.fail(hold, { error: "no", retryable: true }) : board.defer(hold, 0);
      };
      expect(await report()).toBe("cancel");
      expect((await task("t")).state).toBe("cancelled");
      expect(await report()).toBe("again");
      expect(await claim()).toBeUndefined();
    });

    it("a held task ends as cancelled when its holder sends nothing more", async () => {
      const { clock, board, post, claim, task } = await setup();
      await post("t", { policy: policy({ failures: 9, lost: 9 }) });
      await claim();
      await board.cancel("t");
      await clock.advance(termMs);
      expect(await task("t")).toMatchObject({ state: "cancelled", closedBy: "expire" });
    });

    it("an ended task does nothing", async () => {
      const { board, post, claim, task } = await setup();
      await post("t");
      await board.complete(holdOf(await claim()), "1");
      expect(await board.cancel("t")).toBe(false);
      expect((await task("t")).state).toBe("done");
    });
  });
}
