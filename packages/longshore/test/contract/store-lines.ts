// Which worker gets which task, and in which order: lanes, priorities, delays, limits, waiting claims.

import { describe, expect, it } from "vitest";
import type { Claim } from "../../src/engine/board/board.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { Setup } from "./store.ts";
import { holdOf, policy, termMs, turns, type World } from "./world.ts";

const waiting = (world: World, holder: string, parts: Partial<Claim> = {}) =>
  world.board.claim({ reach: { names: ["work"], labels: [] }, holder, termMs, waitMs: 5_000, ...parts });

export function lineContract(setup: Setup): void {
  describe("the order of tasks", () => {
    it("is by priority, then by queueing", async () => {
      const { post, claim } = await setup();
      await post("later");
      await post("last", { priority: 9 });
      await post("first", { priority: -1 });
      await post("latest");
      const order = [await claim(), await claim(), await claim(), await claim()].map((task) => task?.id);
      expect(order).toEqual(["first", "later", "latest", "last"]);
    });

    it("is kept over several lanes of one claim", async () => {
      const { post, claim } = await setup();
      for (const [id, lane] of [
        ["1", "a"],
        ["2", "b"],
        ["3", "a"],
        ["4", "b"],
      ] as const)
        await post(id, { lanes: [laneOf(lane)] });
      const order = [];
      for (let at = 0; at < 4; at++) order.push((await claim(["b", "a"]))?.id);
      expect(order).toEqual(["1", "2", "3", "4"]);
    });

    it("queues a retried task after those that already wait", async () => {
      const { board, post, claim } = await setup();
      await post("a", { policy: policy({ failures: 1 }) });
      await post("b");
      await board.fail(holdOf(await claim()), { error: "boom", retryable: true });
      expect([(await claim())?.id, (await claim())?.id]).toEqual(["b", "a"]);
    });

    it("never lets a task that no worker may take block later tasks", async () => {
      const { post, claim } = await setup();
      for (let at = 0; at < 50; at++) await post(`gpu-${at}`, { lanes: [laneOf("work", ["gpu"])], priority: -1 });
      await post("plain");
      expect(await claim()).toMatchObject({ id: "plain" });
      expect(await claim()).toBeUndefined();
      expect(await claim("work", { labels: ["gpu", "linux"] })).toMatchObject({ id: "gpu-0" });
    });

    it("hands out a delayed task only from its time on", async () => {
      const { clock, post, claim } = await setup();
      await post("late", { delayMs: 100 });
      await post("now");
      expect(await claim()).toMatchObject({ id: "now" });
      await clock.advance(99);
      expect(await claim()).toBeUndefined();
      await clock.advance(1);
      expect(await claim()).toMatchObject({ id: "late" });
    });

    it("does not lose a delay that ends while it is being written", async () => {
      const { clock, probe, post, claim } = await setup();
      probe.before = () => clock.jump(50);
      await post("short", { delayMs: 20 });
      probe.before = undefined;
      await clock.advance(0);
      expect(await claim()).toMatchObject({ id: "short" });
    });

    it("sends a task with several lanes to the first that is polled, else to the last", async () => {
      const { post, claim, task } = await setup();
      const lanes = [laneOf("fast"), laneOf("usual"), laneOf("any")];
      await post("a", { lanes });
      expect((await task("a")).lane?.name).toBe("any");
      await claim("usual");
      await post("b", { lanes });
      expect((await task("b")).lane?.name).toBe("usual");
      await claim("fast");
      await post("c", { lanes });
      expect((await task("c")).lane?.name).toBe("fast");
    });
  });

  describe("limits", () => {
    const one = { limits: [{ key: "api", held: 1 }] };

    it("keep the number held at once, over all lanes, and block no other task", async () => {
      const { board, post, claim } = await setup();
      await post("a", one);
      await post("b", { ...one, lanes: [laneOf("other")] });
      await post("c", { lanes: [laneOf("other")] });
      const held = await claim();
      expect(held?.id).toBe("a");
      expect((await claim("other"))?.id).toBe("c");
      expect(await claim("other")).toBeUndefined();
      await board.complete(holdOf(held), "1");
      expect((await claim("other"))?.id).toBe("b");
    });

    it.each(["complete", "fail", "defer", "cancel", "expire"] as const)("get their permit back by %s", async (verb) => {
      const { clock, board, post, claim } = await setup();
      await post("a", { ...one, policy: policy({}) });
      await post("b", one);
      const hold = holdOf(await claim());
      expect(await claim()).toBeUndefined();
      if (verb === "complete") await board.complete(hold, "1");
      else if (verb === "fail") await board.fail(hold, { error: "no", retryable: false });
      else if (verb === "defer") await board.defer(hold, 10_000);
      else if (verb === "expire") await clock.advance(termMs);
      else {
        await board.cancel("a");
        expect(await claim()).toBeUndefined();
        await board.complete(hold, "1");
      }
      expect((await claim())?.id).toBe("b");
    });

    it("wake a waiting claim as soon as a permit is free", async () => {
      const world = await setup();
      await world.post("a", one);
      const hold = holdOf(await world.claim());
      await world.post("b", one);
      const claim = waiting(world, "bob");
      await turns();
      await world.board.complete(hold, "1");
      expect((await claim).map((task) => task.id)).toEqual(["b"]);
    });

    it("wake the first waiter in each lane, so that a lane without workers does not delay another", async () => {
      const { board, post, claim } = await setup();
      const lanes = (name: string) => ({ ...one, lanes: [laneOf(name)] });
      await post("a", one);
      const hold = holdOf(await claim());
      for (const [id, lane] of [
        ["deserted", "x"],
        ["b", "y"],
        ["c", "y"],
      ] as const)
        await post(id, lanes(lane));
      expect([await claim("x"), await claim("y")]).toEqual([undefined, undefined]);
      await board.complete(hold, "1");
      const next = await claim("y");
      expect(next?.id).toBe("b");
      expect(await claim(["x", "y"])).toBeUndefined();
      await board.complete(holdOf(next), "1");
      expect((await claim(["x", "y"]))?.id).toBe("deserted");
    });

    it("pass on an unused turn: the task was cancelled, or waits for another key", async () => {
      const { board, post, claim } = await setup();
      const both = { limits: [...one.limits, { key: "disk", held: 1 }] };
      await post("a", one);
      await post("disk", { limits: [{ key: "disk", held: 1 }] });
      const [hold] = [holdOf(await claim()), await claim()];
      for (const id of ["gone", "b", "c"]) await post(id, id === "b" ? both : one);
      expect(await claim()).toBeUndefined();
      await board.complete(hold, "1");
      await board.cancel("gone");
      expect((await claim())?.id).toBe("c");
      expect(await claim()).toBeUndefined();
    });

    it("let the claim deadline run while a task waits for them, by default", async () => {
      const { clock, board, post, claim, task } = await setup();
      const parts = (pausesClaim: boolean) => ({
        claimMs: 1_000,
        policy: policy({}),
        limits: [{ ...one.limits[0], key: "api", pausesClaim }],
      });
      await post("a", one);
      const hold = holdOf(await claim("work", { termMs: 60_000 }));
      await post("plain", parts(false));
      for (const id of ["b", "c"]) await post(id, parts(true));
      expect(await claim()).toBeUndefined();
      await clock.advance(2_500);
      expect([(await task("plain")).state, (await task("b")).state, (await task("c")).state]).toEqual(["failed", "queued", "queued"]);
      await board.complete(hold, "1");
      await clock.advance(999);
      expect((await task("b")).state).toBe("queued");
      await clock.advance(1);
      expect(await task("b")).toMatchObject({ state: "failed", error: "timed out: no worker took it in time" });
      // Its turn was passed on to the next task, which has the same time.
      await clock.advance(999);
      expect((await claim())?.id).toBe("c");
    });

    it("end a task at the end of its whole time, although its time to be taken does not run", async () => {
      const { clock, post, claim, task } = await setup();
      await post("a", one);
      await claim("work", { termMs: 60_000 });
      await post("b", {
        claimMs: 1_000,
        totalMs: 2_500,
        policy: policy({}),
        limits: [{ ...one.limits[0], key: "api", pausesClaim: true }],
      });
      expect(await claim()).toBeUndefined();
      await clock.advance(2_499);
      expect((await task("b")).state).toBe("queued");
      await clock.advance(1);
      expect(await task("b")).toMatchObject({ state: "failed", fault: "timed-out", overdue: "totalBy" });
    });

    it("allow as many as a higher limit as soon as a task has this limit", async () => {
      const { board, post, claim } = await setup();
      const three = { limits: [{ key: "api", held: 3 }] };
      for (const id of ["a", "b", "c"]) await post(id, one);
      const hold = holdOf(await claim());
      expect(await claim()).toBeUndefined();
      for (const id of ["d", "e", "f", "g"]) await post(id, three);
      const taken = [await claim(), await claim(), await claim()].map((task) => task?.id);
      expect(taken).toEqual(["d", "e", undefined]);
      await board.complete(hold, "1");
      expect([await claim(), await claim()].map((task) => task?.id)).toEqual(["f", undefined]);
    });

    it("delay hand-outs above a rate until the window has moved on", async () => {
      const { clock, board, post, claim } = await setup();
      const limits = [{ key: "mail", rate: { count: 2, windowMs: 1_000 } }];
      for (const id of ["a", "b", "c", "d"]) await post(id, { limits });
      await board.complete(holdOf(await claim()), "1");
      await clock.advance(400);
      await board.complete(holdOf(await claim()), "1");
      expect(await claim()).toBeUndefined();
      await clock.advance(599);
      expect(await claim()).toBeUndefined();
      await clock.advance(1);
      expect((await claim())?.id).toBe("c");
      expect(await claim()).toBeUndefined();
      await clock.advance(400);
      expect((await claim())?.id).toBe("d");
    });

    it("wake a claim that waits for a rate automatically", async () => {
      const world = await setup();
      const limits = [{ key: "mail", rate: { count: 1, windowMs: 1_000 } }];
      await world.post("a", { limits });
      await world.claim();
      await world.post("b", { limits });
      const claim = waiting(world, "bob", { waitMs: 60_000 });
      await world.clock.advance(1_000);
      expect((await claim).map((task) => task.id)).toEqual(["b"]);
    });
  });

  describe("claims that wait", () => {
    it("get a task that is posted later, in the same commit that posts it", async () => {
      const world = await setup();
      const claim = waiting(world, "ann");
      await turns();
      const before = world.store.commits();
      await world.post("t");
      expect(await claim).toMatchObject([{ id: "t", state: "held", holder: "ann", grant: 1 }]);
      expect(world.store.commits() - before).toBe(1);
    });

    it("are served in order of arrival", async () => {
      const world = await setup();
      const claims = ["ann", "bob", "cy"].map((holder) => waiting(world, holder));
      await turns();
      for (const id of ["1", "2", "3"]) await world.post(id);
      expect((await Promise.all(claims)).map(([task]) => [task?.holder, task?.id])).toEqual([
        ["ann", "1"],
        ["bob", "2"],
        ["cy", "3"],
      ]);
    });

    it("return empty when their time is over, and take no task afterwards", async () => {
      const world = await setup();
      const claim = waiting(world, "ann", { waitMs: 100 });
      await turns();
      await world.clock.advance(100);
      expect(await claim).toEqual([]);
      expect(world.board.waiting).toBe(0);
      await world.post("t");
      expect(await world.claim("work", { holder: "bob" })).toMatchObject({ id: "t", holder: "bob", grant: 1 });
    });

    it("leave the queue when their client disconnects, and take nothing afterwards", async () => {
      const world = await setup();
      const gone = new AbortController();
      const first = waiting(world, "ann", { signal: gone.signal });
      const second = waiting(world, "bob");
      await turns();
      gone.abort();
      expect(await first).toEqual([]);
      await world.post("t");
      expect(await second).toMatchObject([{ id: "t", holder: "bob", grant: 1 }]);
    });

    it("give the task back when their client disconnected during the hand-out", async () => {
      const world = await setup();
      const gone = new AbortController();
      const first = waiting(world, "ann", { signal: gone.signal });
      await turns();
      world.probe.before = () => gone.abort();
      const posting = world.post("t");
      await posting;
      world.probe.before = undefined;
      expect(await first).toEqual([]);
      await turns();
      expect(await world.task("t")).toMatchObject({ state: "queued", attempt: 0, failures: 0, lost: 0 });
      expect(await world.claim("work", { holder: "bob" })).toMatchObject({ id: "t", holder: "bob" });
    });

    it("give the task back when their client disconnected before an immediate answer", async () => {
      const world = await setup();
      await world.post("t");
      const gone = new AbortController();
      const claim = waiting(world, "ann", { waitMs: 0, signal: gone.signal });
      gone.abort();
      expect(await claim).toEqual([]);
      expect(await world.claim("work", { holder: "bob" })).toMatchObject({ id: "t", holder: "bob", attempt: 0 });
    });

    it("are woken by everything that makes a task ready", async () => {
      const world = await setup();
      const wake = async (make: () => Promise<unknown>) => {
        const claim = waiting(world, "bob", { waitMs: 100_000 });
        await turns();
        await make();
        const [task] = await claim;
        return task;
      };
      await world.post("t", { policy: policy({ failures: 1, lost: 1, delayMs: 50 }) });
      let held = await world.claim();
      held = await wake(() => world.board.giveBack(holdOf(held)));
      expect(held?.grant).toBe(3);
      held = await wake(async () => {
        await world.board.fail(holdOf(held), { error: "boom", retryable: true });
        await world.clock.advance(50);
      });
      expect(held).toMatchObject({ grant: 5, attempt: 1 });
      held = await wake(() => world.clock.advance(termMs));
      expect(held).toMatchObject({ grant: 7, attempt: 2, lost: 1 });
      held = await wake(async () => {
        await world.board.defer(holdOf(held), 70);
        await world.clock.advance(70);
      });
      expect(held).toMatchObject({ grant: 9, attempt: 2 });
    });

    it("and offers wait in one queue, and what an offer gets has no owner", async () => {
      const world = await setup();
      const offer = world.board.offer({ reach: { names: ["work"], labels: [] }, termMs, waitMs: 5_000 });
      const claim = waiting(world, "bob");
      await turns();
      expect(world.board.waiting).toBe(2);
      const before = world.store.commits();
      await world.post("first");
      await world.post("second");
      expect(await offer).toMatchObject([{ id: "first", state: "offered", holder: null, grant: 1 }]);
      expect(await claim).toMatchObject([{ id: "second", state: "held", holder: "bob" }]);
      expect(world.store.commits() - before).toBe(2);
    });

    it.each(["its client goes", "its time is over", "the server closes"])("of offers leave the queue when %s", async (why) => {
      const world = await setup();
      const gone = new AbortController();
      const offer = world.board.offer({ reach: { names: ["work"], labels: [] }, termMs, waitMs: 5_000, signal: gone.signal });
      await turns();
      if (why === "its client goes") gone.abort();
      else if (why === "its time is over") await world.clock.advance(5_000);
      else world.board.dismiss();
      expect(await offer).toEqual([]);
      expect(world.board.waiting).toBe(0);
      await world.post("t");
      expect((await world.task("t")).state).toBe("queued");
    });

    it("give an offered task back, to its place, when its client disconnected during the hand-out", async () => {
      const world = await setup();
      const gone = new AbortController();
      const offer = world.board.offer({ reach: { names: ["work"], labels: [] }, termMs, waitMs: 5_000, signal: gone.signal });
      await turns();
      await Promise.all([world.post("t"), world.post("later"), Promise.resolve().then(() => gone.abort())]);
      expect(await offer).toEqual([]);
      await turns();
      expect(await world.task("t")).toMatchObject({ state: "queued", attempt: 0, lost: 0 });
      expect((await world.claim())?.id).toBe("t");
    });

    it("match the lanes that they may take from, made before or after them", async () => {
      const world = await setup();
      const gpu = waiting(world, "gpu", { reach: { names: ["work"], labels: ["gpu"] } });
      await turns();
      await world.post("arm", { lanes: [laneOf("work", ["arm"])] });
      await world.post("gpu", { lanes: [laneOf("work", ["gpu"])] });
      expect(await gpu).toMatchObject([{ id: "gpu" }]);
    });
  });
}
