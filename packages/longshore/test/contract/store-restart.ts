// The state that is kept over a restart of the process.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, policy, step, termMs, turns, type World, type WorldOptions } from "./world.ts";

export function restartContract(setup: Setup): void {
  const reopen = async (world: World, options: WorldOptions = {}): Promise<World> => {
    await world.close();
    return setup({ place: world.place, clock: world.clock, ...options });
  };

  describe("after a restart", () => {
    it("queues keep their order, delays continue, and ended tasks stay ended", async () => {
      let world = await setup();
      await world.post("b", { priority: 1 });
      await world.post("a");
      await world.post("late", { delayMs: 500 });
      await world.post("c", { priority: 1 });
      await world.post("done", { priority: -9 });
      await world.board.complete(holdOf(await world.claim()), '"kept"');
      world = await reopen(world);
      expect([(await world.claim())?.id, (await world.claim())?.id, (await world.claim())?.id]).toEqual(["a", "b", "c"]);
      expect(await world.task("done")).toMatchObject({ state: "done", output: '"kept"' });
      await world.clock.advance(499);
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(1);
      expect((await world.claim())?.id).toBe("late");
      await world.post("new");
      expect((await world.claim())?.id).toBe("new");
    });

    it("every valid hold gets one full term, also when its last extend was not written", async () => {
      let world = await setup();
      await world.post("t");
      const hold = holdOf(await world.claim());
      for (let beat = 0; beat < 5; beat++) {
        await world.clock.advance(900);
        await world.board.extend(hold);
      }
      await world.close();
      await world.clock.advance(50_000);
      world = await setup({ place: world.place, clock: world.clock });
      await world.clock.advance(termMs - 1);
      expect((await world.task("t")).state).toBe("held");
      expect(await world.board.extend(hold)).toEqual({ verdict: "ok", holdUntil: world.clock.now() + termMs });
      await world.clock.advance(termMs);
      expect(await world.task("t")).toMatchObject({ state: "queued", lost: 1 });
    });

    it("every offer gets one full term and the full time to be accepted, before it returns without using a budget", async () => {
      const reach = { names: ["work"], labels: [] };
      let world = await setup();
      for (const id of ["taken", "left"]) await world.post(id, { claimMs: 1_500, policy: policy({}) });
      const [taken] = await world.board.offer({ reach, termMs, max: 2 });
      await world.close();
      await world.clock.advance(50_000);
      world = await setup({ place: world.place, clock: world.clock });
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(termMs - 1);
      expect((await world.board.extend(holdOf(taken), { holder: "ann" })).verdict).toBe("ok");
      expect(await world.task("taken")).toMatchObject({ state: "held", holder: "ann", startedAt: world.clock.now() });
      await world.clock.advance(1);
      expect(await world.task("left")).toMatchObject({ state: "failed", fault: "timed-out" });
    });

    it("an offer that lasts longer than its task may wait to be accepted ends with that wait", async () => {
      const reach = { names: ["work"], labels: [] };
      let world = await setup();
      await world.post("t", { claimMs: 2_000, policy: policy({}) });
      const [offered] = await world.board.offer({ reach, termMs, offerMs: 10_000 });
      await world.clock.advance(1_500);
      world = await reopen(world);
      await world.clock.advance(1_999);
      expect((await world.task("t")).state).toBe("offered");
      await world.clock.advance(1);
      expect(await world.task("t")).toMatchObject({ state: "failed", fault: "timed-out" });
      expect(await world.board.complete(holdOf(offered), "1")).toBe("stale");
    });

    it("an offer lasts no longer after many restarts than after one", async () => {
      const reach = { names: ["work"], labels: [] };
      let world = await setup();
      await world.post("t", { policy: policy({}) });
      await world.board.offer({ reach, termMs, offerMs: 3_000 });
      for (let restarts = 0; restarts < 5; restarts++) {
        await world.clock.advance(2_000);
        world = await reopen(world);
        // Each first write also writes what was found at the start.
        await world.post(`other ${restarts}`, { priority: 9 });
      }
      await world.clock.advance(2_999);
      expect((await world.task("t")).state).toBe("offered");
      await world.clock.advance(1);
      expect((await world.task("t")).state).not.toBe("offered");
    });

    it("a short offer lasts as long as a hold, so that its worker can come back", async () => {
      const reach = { names: ["work"], labels: [] };
      let world = await setup();
      await world.post("t");
      const [offered] = await world.board.offer({ reach, termMs, offerMs: 100 });
      world = await reopen(world);
      await world.clock.advance(termMs - 1);
      expect((await world.board.extend(holdOf(offered), { holder: "ann" })).verdict).toBe("ok");
    });

    it("an offer that is not accepted returns to its place, after its full term", async () => {
      const reach = { names: ["work"], labels: [] };
      let world = await setup();
      await world.post("t");
      await world.post("later");
      await world.board.offer({ reach, termMs, offerMs: 3_000 });
      await world.clock.advance(2_000);
      world = await reopen(world);
      await world.clock.advance(2_999);
      expect((await world.task("t")).state).toBe("offered");
      await world.clock.advance(1);
      expect(await world.task("t")).toMatchObject({ state: "queued", lost: 0, attempt: 0 });
      expect((await world.claim())?.id).toBe("t");
    });

    it("holds and delays last no longer when the clock was set back", async () => {
      let world = await setup();
      await world.post("held", { policy: policy({ lost: 1 }) });
      const hold = holdOf(await world.claim());
      await world.post("late", { delayMs: 5_000 });
      await world.close();
      world.clock.jump(-3_600_000);
      world = await setup({ place: world.place, clock: world.clock });
      expect(await world.board.extend(hold)).toEqual({ verdict: "ok", holdUntil: world.clock.now() + termMs });
      await world.clock.advance(termMs);
      expect(await world.task("held")).toMatchObject({ state: "queued", lost: 1 });
      expect(await world.claim()).toMatchObject({ id: "held", attempt: 1 });
      await world.clock.advance(4_999 - termMs);
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(1);
      expect((await world.claim())?.id).toBe("late");
    });

    it("an attempt that follows one that ended during a pause still waits in its lane", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a", { retry: { failures: 1 } })]);
      const hold = holdOf(await world.claim("a"));
      await world.runs.tell(id, { kind: "pause" });
      await world.board.fail(hold, { error: "no", retryable: true });
      await world.runs.tell(id, { kind: "resume" });
      world = await reopen(world);
      await world.clock.advance(60_000);
      await world.board.complete(holdOf(await world.claim("a")), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("a run that is retried after its end continues", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
      await world.board.fail(holdOf(await world.claim("a")), { error: "no", retryable: false });
      expect((await world.run(id)).state).toBe("failed");
      await world.runs.retry(id);
      world = await reopen(world);
      expect(await world.run(id)).toMatchObject({ state: "running", endedAt: null });
      await world.board.complete(holdOf(await world.claim("a")), "1");
      await world.board.complete(holdOf(await world.claim("b")), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("only the chosen nodes of a lazy run are still wanted", async () => {
      let world = await setup();
      // biome-ignore lint/suspicious/noThenProperty: it is the language's own word, and a flow is never awaited
      const either = { $if: { $step: "asked" }, then: { $step: "yes" }, else: { $step: "no" } };
      const steps = ["asked", "need", "yes", "no"].map((id) => ({
        id,
        component: `/${id}`,
        input: id === "yes" ? { $step: "need" } : null,
      }));
      await world.runs.define({ name: "f", dialect: "stepflow", source: JSON.stringify({ steps, output: either }) });
      const { run } = await world.runs.start({ workflow: "f", input: "null" });
      await world.board.complete(holdOf(await world.claim("asked")), "true");
      world = await reopen(world);
      expect(await world.claim(["yes", "no"])).toBeUndefined();
      await world.board.complete(holdOf(await world.claim("need")), '"n"');
      world = await reopen(world);
      expect(await world.claim("no")).toBeUndefined();
      const held = await world.claim("yes");
      expect(held?.input).toBe('"n"');
      await world.board.complete(holdOf(held), "[1]");
      expect(await world.run(run.id)).toMatchObject({ state: "succeeded", output: "[1]" });
    });

    it("the holder finishes its work as without a restart", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
      const hold = holdOf(await world.claim("a"));
      world = await reopen(world);
      expect(await world.board.complete(hold, "1")).toBe("ok");
      world = await reopen(world);
      expect(await world.board.complete(hold, "1")).toBe("again");
      await world.board.complete(holdOf(await world.claim("b")), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("earlier ends of tasks are still known", async () => {
      let world = await setup();
      await world.post("t", { policy: policy({ failures: 3 }) });
      const first = holdOf(await world.claim());
      await world.board.fail(first, { error: "one", retryable: true });
      const second = holdOf(await world.claim());
      await world.board.fail(second, { error: "two", retryable: true });
      world = await reopen(world);
      const fail = (hold: typeof first) => world.board.fail(hold, { error: "again", retryable: true });
      expect([await fail(first), await fail(second)]).toEqual(["again", "again"]);
      expect(await world.board.complete(first, "1")).toBe("stale");
      expect(await world.claim()).toMatchObject({ grant: 5, attempt: 2, failures: 2 });
    });

    it("earlier reports are still recognised, of the result and of earlier attempts", async () => {
      let world = await setup();
      await world.post("t", { policy: policy({ failures: 3 }) });
      await world.board.fail(holdOf(await world.claim()), { error: "one", retryable: true, receipt: "first" });
      await world.board.fail(holdOf(await world.claim()), { error: "two", retryable: true });
      const before = world.store.commits();
      await world.board.complete(holdOf(await world.claim()), "1", { receipt: "last" });
      expect(world.store.commits() - before).toBe(2);
      world = await reopen(world);
      const receipts = await Promise.all([1, 3, 5, 7].map((grant) => world.board.receipt("t", grant)));
      expect(receipts).toEqual(["first", undefined, "last", undefined]);
      expect(await world.board.receipt("unknown", 1)).toBeUndefined();
    });

    it("a hold has the length that its holder last requested", async () => {
      let world = await setup();
      await world.post("t");
      const hold = holdOf(await world.claim());
      await world.board.extend(hold, { termMs: 9_000 });
      world = await reopen(world);
      await world.clock.advance(8_999);
      expect((await world.board.extend(hold)).verdict).toBe("ok");
    });

    it("a step that a part started is not started again at the end of the source, and is not lost before it", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"], startWhen: "first-part" })]);
      const hold = holdOf(await world.claim("a"));
      await world.parts.put(hold, [{ uid: "x", value: "1" }]);
      world = await reopen(world);
      const reader = holdOf(await world.claim("b"));
      await world.parts.put(hold, [{ uid: "y", value: "1" }]);
      world = await reopen(world);
      await world.board.complete(hold, "1");
      expect(await world.claim("b")).toBeUndefined();
      world = await reopen(world);
      await world.board.complete(reader, "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("the numbers of parts continue", async () => {
      const world = await setup();
      await world.post("t");
      const hold = holdOf(await world.claim());
      await world.parts.put(
        hold,
        ["a", "b"].map((uid) => ({ uid, value: "1" })),
      );
      const reopened = await reopen(world);
      await reopened.parts.put(
        hold,
        ["a", "c"].map((uid) => ({ uid, value: "1" })),
      );
      expect((await reopened.parts.read("t", 0, 10)).parts.map(({ uid, sequence }) => [uid, sequence])).toEqual([
        ["a", 1],
        ["b", 2],
        ["c", 3],
      ]);
    });

    it("limits count tasks that are still held", async () => {
      let world = await setup();
      const limits = [{ key: "api", held: 1 }];
      await world.post("a", { limits });
      await world.post("b", { limits });
      const hold = holdOf(await world.claim());
      world = await reopen(world);
      expect(await world.claim()).toBeUndefined();
      await world.board.complete(hold, "1");
      expect((await world.claim())?.id).toBe("b");
    });

    it("windows of a rate count earlier hand-outs, also of tasks that have ended or were retried", async () => {
      let world = await setup();
      const limits = [{ key: "mail", rate: { count: 3, windowMs: 1_000 } }];
      for (const id of ["a", "b", "c", "d"]) await world.post(id, { limits, policy: policy({ failures: 1, delayMs: 60_000 }) });
      await world.board.complete(holdOf(await world.claim()), "1");
      await world.clock.advance(200);
      await world.board.defer(holdOf(await world.claim()), 60_000);
      await world.clock.advance(200);
      await world.board.fail(holdOf(await world.claim()), { error: "no", retryable: true });
      world = await reopen(world);
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(599);
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(1);
      expect((await world.claim())?.id).toBe("d");
    });

    it("windows of a rate last no longer when the clock was set back", async () => {
      let world = await setup();
      const limits = [{ key: "mail", rate: { count: 1, windowMs: 1_000 } }];
      for (const id of ["a", "b"]) await world.post(id, { limits });
      await world.board.complete(holdOf(await world.claim()), "1");
      await world.close();
      world.clock.jump(-3_600_000);
      world = await setup({ place: world.place, clock: world.clock });
      expect(await world.claim()).toBeUndefined();
      await world.clock.advance(1_000);
      expect((await world.claim())?.id).toBe("b");
    });

    it("deadlines of tasks and runs fire, also those that passed during the stop", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a")], { timeoutMs: 5_000 });
      await world.post("t", { claimMs: 7_000 });
      await world.close();
      world.clock.jump(6_000);
      world = await setup({ place: world.place, clock: world.clock });
      await world.clock.advance(0);
      expect((await world.run(id)).state).toBe("timed-out");
      await world.clock.advance(999);
      expect((await world.task("t")).state).toBe("queued");
      await world.clock.advance(1);
      expect((await world.task("t")).state).toBe("failed");
    });

    it("cancelled work stays cancelled, and a holder that returns gets the verdict cancel", async () => {
      let world = await setup();
      const { id } = await world.start("w", [step("a"), step("b")]);
      const hold = holdOf(await world.claim("a"));
      await world.runs.cancel(id);
      world = await reopen(world);
      expect(await world.claim(["a", "b"])).toBeUndefined();
      expect((await world.board.extend(hold)).verdict).toBe("cancel");
    });

    it("messages between runs continue to be processed", async () => {
      const silent = await setup({ carries: false });
      await silent.define("inner", [step("inside")]);
      const { id } = await silent.start("outer", [step("child", { workflow: "inner" })]);
      await turns();
      expect(await silent.claim("inside")).toBeUndefined();

      const speaking = await reopen(silent);
      await turns(10);
      const held = await speaking.claim("inside");
      expect(held).toBeDefined();

      const silentAgain = await reopen(speaking, { carries: false });
      await silentAgain.board.complete(holdOf(held), "1");
      await turns();
      expect((await silentAgain.run(id)).state).toBe("running");

      const last = await reopen(silentAgain);
      await turns(10);
      expect((await last.run(id)).state).toBe("succeeded");
    });
  });

  describe("a second server", () => {
    it("on the same data is refused at once, and accepted after the first has closed", async () => {
      const world = await setup();
      await expect(setup({ place: world.place })).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      await world.close();
      await setup({ place: world.place });
    });
  });
}
