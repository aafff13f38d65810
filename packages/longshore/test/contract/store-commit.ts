// Callers that arrive together share a commit. A mistake of one caller does not affect the others, and changes without a commit are undone.

import { describe, expect, it } from "vitest";
import { diskFull } from "./sqlite.ts";
import type { Setup } from "./store.ts";
import { holdOf, newTask, policy, step, termMs, turns } from "./world.ts";

const reach = { names: ["work"], labels: [] };

export function commitContract(setup: Setup): void {
  describe("group commit", () => {
    it("writes changes that arrive together in one transaction", async () => {
      const { store, board } = await setup();
      const before = store.commits();
      await Promise.all(Array.from({ length: 100 }, (_, at) => board.post([newTask(`t${at}`)])));
      expect(store.commits() - before).toBe(1);
      const claimed = await Promise.all(Array.from({ length: 100 }, () => board.claim({ reach, holder: "ann", termMs })));
      expect(store.commits() - before).toBe(2);
      expect(new Set(claimed.map(([task]) => task?.id)).size).toBe(100);
    });

    it("writes large rows that arrive together in several transactions", async () => {
      const { store, board } = await setup();
      const before = store.commits();
      const input = JSON.stringify("x".repeat(1_000_000));
      await Promise.all(Array.from({ length: 10 }, (_, at) => board.post([newTask(`t${at}`, { input })])));
      // A transaction accepts no more operations when it has 1.6 M characters to write, so it contains two of these.
      expect(store.commits() - before).toBe(5);
    });

    it("resolves no call before the commit that holds the change", async () => {
      const { probe, board } = await setup();
      const events: string[] = [];
      probe.after = () => events.push("committed");
      const answered = ["a", "b"].map(async (id) => {
        await board.post([newTask(id)]);
        events.push(`${id} answered`);
      });
      await Promise.all(answered);
      expect(events).toEqual(["committed", "a answered", "b answered"]);
    });

    it("needs two commits for a task after its post, and one when the next claim arrives with the report", async () => {
      const { store, board, post, claim } = await setup();
      for (const id of ["a", "b", "c"]) await post(id);
      const before = store.commits();
      let held = await claim();
      for (let at = 0; at < 2; at++) {
        const [, next] = await Promise.all([board.complete(holdOf(held), "1"), claim()]);
        held = next;
      }
      await board.complete(holdOf(held), "1");
      expect(store.commits() - before).toBe(4);
    });

    it("needs none for an extend without payload, and none for a claim that finds nothing", async () => {
      const { clock, store, board, post, claim } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      const before = store.commits();
      for (let beat = 0; beat < 20; beat++) {
        await clock.advance(200);
        expect((await board.extend(hold)).verdict).toBe("ok");
        expect(await claim()).toBeUndefined();
      }
      expect(store.commits() - before).toBe(0);
    });

    it("writes a completion, its output and the steps that follow in one transaction", async () => {
      const { store, board, start, claim } = await setup();
      await start("fan", [step("first"), ...Array.from({ length: 50 }, (_, at) => step(`s${at}`, { after: ["first"] }))]);
      const hold = holdOf(await claim("first"));
      const before = store.commits();
      await board.complete(hold, "1");
      expect(store.commits() - before).toBe(1);
      expect(await claim("s49")).toBeDefined();
    });

    it("fails only the caller whose input cannot be stored", async () => {
      const { board, task } = await setup();
      const posts = ["a", "bad\u0000id", "b"].map((id) => board.post([newTask(id)]));
      const outcomes = await Promise.allSettled(posts);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      await expect(posts[1]).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "id" } });
      expect([(await task("a")).state, (await task("b")).state]).toEqual(["queued", "queued"]);
    });

    it("fails only the caller whose holder cannot be stored, and the next worker gets the task", async () => {
      const { board, post } = await setup();
      await post("t");
      const claims = ["a\u0000b", "bob"].map((holder) => board.claim({ reach, holder, termMs }));
      await expect(claims[0]).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      expect(await claims[1]).toMatchObject([{ id: "t", holder: "bob", grant: 1 }]);
    });

    it("fails only the caller whose operation throws, and undoes its changes", async () => {
      const { board, task } = await setup();
      const posts = [board.post([newTask("a")]), board.post([newTask("half"), newTask("none", { lanes: [] })]), board.post([newTask("b")])];
      const outcomes = await Promise.allSettled(posts);
      expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
      expect(await board.task("half")).toBeUndefined();
      expect([(await task("a")).state, (await task("b")).state]).toEqual(["queued", "queued"]);
    });
  });

  describe("a commit that fails", () => {
    it("has changed nothing: the same claim hands out the same task when there is space", async () => {
      const { clock, probe, board, post, claim } = await setup();
      await post("a");
      await post("b");
      probe.before = () => {
        throw diskFull();
      };
      await expect(claim()).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      await expect(claim("work", { holder: "bob" })).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      expect(await board.task("a")).toMatchObject({ state: "queued", grant: 0 });
      probe.before = undefined;
      await clock.advance(1_000);
      expect(await claim("work", { holder: "cy" })).toMatchObject({ id: "a", holder: "cy", grant: 1 });
      expect(await claim()).toMatchObject({ id: "b", grant: 1 });
    });

    it("refuses new work while it lasts, still serves calls that write nothing, and resumes automatically", async () => {
      const { clock, probe, board, post, claim } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      probe.before = () => {
        throw diskFull();
      };
      await expect(post("u")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      await expect(board.complete(hold, "1")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      expect((await board.extend(hold)).verdict).toBe("ok");
      expect(await claim()).toBeUndefined();
      expect(await board.task("t")).toMatchObject({ state: "held" });
      probe.before = undefined;
      await clock.advance(250);
      expect(await board.complete(hold, "1")).toBe("ok");
      await post("u");
      expect(await claim()).toMatchObject({ id: "u" });
    });

    it("ends no hold of a worker that still renews it, also rarely, and accepts its result when there is space", async () => {
      const { clock, probe, board, post, claim, task } = await setup();
      await post("t");
      await post("dead", { policy: policy({ lost: 1 }) });
      const hold = holdOf(await claim());
      await claim("work", { holder: "dead" });
      probe.before = () => {
        throw diskFull();
      };
      for (let beat = 0; beat < 10; beat++) {
        await clock.advance(termMs - 1);
        expect(await board.extend(hold)).toEqual({ verdict: "ok", holdUntil: clock.now() + termMs });
      }
      await expect(board.extend(hold, { output: "1" })).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      await expect(board.complete(hold, "1")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      probe.before = undefined;
      await clock.advance(termMs - 1);
      expect(await board.complete(hold, "1")).toBe("ok");
      await clock.advance(1_000);
      expect(await task("dead")).toMatchObject({ state: "queued", lost: 1 });
    });

    it("still ends the hold of a worker that is too late to renew it", async () => {
      const { clock, probe, board, post, claim } = await setup();
      await post("t");
      const hold = holdOf(await claim());
      probe.before = () => {
        throw diskFull();
      };
      clock.jump(termMs);
      expect((await board.extend(hold)).verdict).toBe("stale");
    });

    it("restores permits, parked tasks and waiting claims", async () => {
      const { clock, probe, board, post, claim } = await setup();
      const limits = [{ key: "api", held: 1 }];
      await post("a", { limits });
      const hold = holdOf(await claim());
      await post("b", { limits });
      const waiting = board.claim({ reach, holder: "bob", termMs, waitMs: 60_000 });
      await turns();
      probe.before = () => {
        throw diskFull();
      };
      await expect(board.complete(hold, "1")).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      expect(board.waiting).toBe(1);
      expect(await claim()).toBeUndefined();
      probe.before = undefined;
      await clock.advance(300);
      expect(await board.complete(hold, "1")).toBe("ok");
      expect(await waiting).toMatchObject([{ id: "b", holder: "bob", grant: 1 }]);
      await post("c", { limits });
      expect(await claim()).toBeUndefined();
    });

    it("keeps the place of a waiting claim in the queue", async () => {
      const { clock, probe, board, post } = await setup();
      const wait = (holder: string) => board.claim({ reach, holder, termMs, waitMs: 60_000 });
      const [first, second] = [wait("ann"), wait("bob")];
      await turns();
      probe.before = () => {
        throw diskFull();
      };
      await expect(post("lost")).rejects.toThrow();
      probe.before = undefined;
      await clock.advance(300);
      await post("a");
      await post("b");
      expect([await first, await second]).toMatchObject([[{ id: "a", holder: "ann" }], [{ id: "b", holder: "bob" }]]);
      expect(await board.task("lost")).toBeUndefined();
    });

    it("leaves the run unchanged, and the report can be sent again", async () => {
      const { clock, probe, board, start, claim, run } = await setup();
      const { id } = await start("chain", [step("a"), step("b", { after: ["a"] })]);
      const hold = holdOf(await claim("a"));
      probe.before = () => {
        throw diskFull();
      };
      await expect(board.complete(hold, "1")).rejects.toThrow();
      expect(await run(id)).toMatchObject({ state: "running", left: 2 });
      expect(await claim("b")).toBeUndefined();
      probe.before = undefined;
      await clock.advance(300);
      expect(await board.complete(hold, "1")).toBe("ok");
      expect(await run(id)).toMatchObject({ left: 1 });
      expect(await claim("b")).toBeDefined();
    });

    it("does not lose deadlines that became due during it", async () => {
      const { clock, probe, post, claim, task } = await setup();
      await post("t", { policy: policy({ lost: 1 }) });
      await claim();
      probe.before = () => {
        throw diskFull();
      };
      await clock.advance(termMs + 5_000);
      expect((await task("t")).state).toBe("held");
      probe.before = undefined;
      await clock.advance(1_000);
      expect((await task("t")).state).toBe("queued");
    });

    it("because of one unwritable row delays no other expiry", async () => {
      const { clock, probe, post, task } = await setup();
      for (const [at, id] of ["a", "poison", "b"].entries()) await post(id, { claimMs: 10 + at });
      let rejected = 0;
      // The batch fails once as a whole, then the second of its operations alone.
      probe.before = () => {
        rejected++;
        if (rejected === 1 || rejected === 3) throw new Error("This row cannot be written.");
      };
      clock.jump(100);
      await clock.advance(0);
      expect([(await task("a")).state, (await task("poison")).state, (await task("b")).state]).toEqual(["failed", "queued", "failed"]);
      await clock.advance(1_000);
      expect((await task("poison")).state).toBe("failed");
    });
  });
}
