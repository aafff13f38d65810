// Schedules on the store: ticks, overlap, catching up, pauses, runs by hand, backfills, and what outlives the process.

import { describe, expect, it } from "vitest";
import { hourMs, minuteMs, outcomes, scheduled, shown, workOff } from "./schedule-world.ts";
import { diskFull } from "./sqlite.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, type World } from "./world.ts";

export function scheduleContract(setup: Setup): void {
  describe("a schedule", () => {
    it("starts a run at each tick, and not before", async () => {
      const world = await scheduled(setup, { every: "1m" }, '{"n":1}');
      await world.clock.advance(minuteMs - 1);
      expect(await world.claim("a")).toBeUndefined();
      await world.clock.advance(1);
      const task = await world.claim("a");
      expect(task?.runId).toBe((await shown(world)).history[0]?.runId);
      expect((await world.run(task?.runId as string)).input).toBe('{"n":1}');
      await world.board.complete(holdOf(task), "1");
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("passes the time of the tick to its run when a field is named for it", async () => {
      const world = await scheduled(setup, { every: "1h", tickField: "tick", jitter: "30m" }, '{"big":12345678901234567890,"tick":1}');
      const start = world.clock.now();
      await world.clock.advance(2 * hourMs);
      const { history } = await shown(world);
      const run = await world.run(history.at(-1)?.runId as string);
      expect(run.input).toBe(`{"big":12345678901234567890,"tick":"${new Date(start + hourMs).toISOString()}"}`);
    });

    it("of cron follows its time zone over a change of daylight saving", async () => {
      const world = await scheduled(setup, { cron: "30 2 * * *", timezone: "Europe/Berlin", overlap: "allow" });
      // 2020-03-29: clocks go from 02:00 to 03:00, at 01:00 UTC.
      await world.clock.advance(Date.parse("2020-03-28T00:00Z") - world.clock.now());
      await world.clock.advance(3 * 24 * hourMs);
      const { history } = await shown(world);
      const times = history.map(({ at }) => new Date(at).toISOString().slice(0, 16));
      expect(times.slice(0, 3)).toEqual(["2020-03-30T00:30", "2020-03-29T01:00", "2020-03-28T01:30"]);
    });

    it("for a single time starts one run, and is removed a week later", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const at = world.clock.now() + hourMs;
      await world.schedules.put({ name: "s", rules: { workflow: "w", at: new Date(at).toISOString() }, input: "null" });
      await world.clock.advance(2 * hourMs);
      expect(await workOff(world)).toBe(1);
      expect(await shown(world)).toMatchObject({ nextAt: null, lastAt: at });
      await world.clock.advance(7 * 24 * hourMs);
      expect(await world.schedules.get("s")).toBeUndefined();
      expect(await workOff(world)).toBe(0);
    });

    it("for a past time starts nothing", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const { schedule } = await world.schedules.put({ name: "s", rules: { workflow: "w", at: world.clock.now() }, input: "null" });
      expect(schedule.nextAt).toBeNull();
      await world.clock.advance(hourMs);
      expect(await workOff(world)).toBe(0);
    });

    it("delays its ticks by their jitter, which is the same each time", async () => {
      const world = await scheduled(setup, { every: "1h", jitter: "30m" });
      const [first, second] = await world.schedules.upcoming(await shown(world), 2);
      const start = world.clock.now();
      expect(first?.tick).toBe(start + hourMs);
      expect(first?.dueAt).toBeGreaterThan(start + hourMs);
      await world.clock.advance((first?.dueAt as number) - start - 1);
      expect(await workOff(world)).toBe(0);
      await world.clock.advance(1);
      expect(await workOff(world)).toBe(1);
      expect((await world.schedules.upcoming(await shown(world), 1))[0]).toEqual(second);
    });

    it("records a tick whose run cannot be started, and continues", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "cancel-previous" });
      await world.clock.advance(minuteMs);
      // As stored by a server with one more dialect.
      await world.store.runs.define({ id: "gone", name: "w", dialect: "gone", source: "{}" });
      await world.clock.advance(minuteMs);
      await world.define("w", [step("b")]);
      await world.clock.advance(minuteMs);
      const [third, second, first] = (await shown(world)).history;
      expect(second).toMatchObject({ outcome: "failed", runId: null });
      expect(second?.reason).toContain("There is no dialect gone");
      // The changes of the failed start were undone: the next tick cancelled the open run.
      expect(await world.run(first?.runId as string)).toMatchObject({ state: "cancelled", endedAt: third?.at });
      expect(await workOff(world, "b")).toBe(1);
    });

    it("starts the newest version of its workflow", async () => {
      const world = await scheduled(setup);
      await world.define("w", [step("b")]);
      await world.clock.advance(minuteMs);
      expect(await workOff(world, "b")).toBe(1);
    });

    it("finds the run that was started before with the key of its tick", async () => {
      const world = await scheduled(setup);
      const key = `schedule:s@${new Date(world.clock.now() + minuteMs).toISOString()}`;
      const { run } = await world.runs.start({ workflow: "w", input: "null", key });
      await world.clock.advance(minuteMs);
      expect((await shown(world)).history[0]).toMatchObject({ outcome: "present", runId: run.id });
      expect(await workOff(world)).toBe(1);
    });

    it("stores its last twenty ticks", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "allow" });
      await world.clock.advance(30 * minuteMs);
      expect((await shown(world)).history.length).toBe(20);
    });
  });

  describe("overlap", () => {
    it("skip omits a tick while a run is open", async () => {
      const world = await scheduled(setup);
      const start = world.clock.now();
      await world.clock.advance(3 * minuteMs);
      expect(await outcomes(world, start)).toEqual(["1 started", "2 skipped", "3 skipped"]);
      expect(await workOff(world)).toBe(1);
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("allow starts runs while others are open", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "allow" });
      await world.clock.advance(3 * minuteMs);
      expect(await workOff(world)).toBe(3);
    });

    it("cancel-previous ends the open run and starts in the same transaction", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "cancel-previous" });
      await world.clock.advance(minuteMs);
      const before = world.store.commits();
      await world.clock.advance(minuteMs);
      expect(world.store.commits() - before).toBe(1);
      const [second, first] = (await shown(world)).history;
      expect(await world.run(first?.runId as string)).toMatchObject({ state: "cancelled", error: "the next tick of schedule s has come" });
      expect(await world.run(second?.runId as string)).toMatchObject({ state: "running" });
    });

    it("queue starts ticks one after the other in order, and omits ticks when the queue is full", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "queue", queueMax: 2, tickField: "t" }, "{}");
      const start = world.clock.now();
      await world.clock.advance(4 * minuteMs);
      expect(await outcomes(world, start)).toEqual(["1 started", "2 queued", "3 queued", "4 skipped"]);
      const inputs: string[] = [];
      for (let task = await world.claim("a"); task !== undefined; task = await world.claim("a")) {
        expect(await world.claim("a")).toBeUndefined();
        inputs.push((await world.run(task.runId as string)).input);
        await world.board.complete(holdOf(task), "1");
        await world.clock.advance(0);
      }
      expect(inputs).toEqual([1, 2, 3].map((minute) => `{"t":"${new Date(start + minute * minuteMs).toISOString()}"}`));
      expect((await shown(world)).queued).toEqual([]);
    });
  });

  describe("a pause", () => {
    it("starts nothing, and its ticks are omitted", async () => {
      const world = await scheduled(setup);
      const start = world.clock.now();
      expect(await world.schedules.pause("s", "the disk is being replaced")).toMatchObject({ paused: "the disk is being replaced" });
      await world.clock.advance(5 * minuteMs + 1);
      expect(await world.schedules.upcoming(await shown(world), 10)).toEqual([]);
      expect(await world.schedules.resume("s")).toMatchObject({ paused: null, nextAt: start + 6 * minuteMs });
      expect(await workOff(world)).toBe(0);
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("delays waiting ticks until it is over", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "queue" });
      await world.clock.advance(2 * minuteMs);
      await world.schedules.pause("s", "why not");
      expect(await workOff(world)).toBe(1);
      await world.clock.advance(0);
      expect(await workOff(world)).toBe(0);
      await world.schedules.resume("s");
      await world.clock.advance(0);
      expect(await workOff(world)).toBe(1);
    });

    it("needs a reason", async () => {
      const world = await scheduled(setup);
      await expect(world.schedules.pause("s", "")).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "reason" } });
      expect(await world.schedules.pause("nothing", "x")).toBeUndefined();
    });
  });

  describe("a run by hand", () => {
    it("starts at once, also during a pause, and changes no tick", async () => {
      const world = await scheduled(setup);
      await world.schedules.pause("s", "x");
      const before = await shown(world);
      const started = await world.schedules.run("s");
      expect(started?.schedule.history[0]).toMatchObject({ outcome: "started", by: "hand", runId: started?.run.id });
      expect(started?.schedule.nextAt).toBe(before.nextAt);
      expect(await workOff(world)).toBe(1);
      expect(await world.schedules.run("nothing")).toBeUndefined();
    });

    it("follows the overlap rule, or another given one", async () => {
      const world = await scheduled(setup);
      const first = await world.schedules.run("s");
      await expect(world.schedules.run("s")).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      await world.clock.advance(1);
      await world.schedules.run("s", { overlap: "allow" });
      await world.clock.advance(1);
      await world.schedules.run("s", { overlap: "cancel-previous" });
      expect((await world.run(first?.run.id as string)).state).toBe("cancelled");
      expect(await workOff(world)).toBe(1);
    });
  });

  describe("a backfill", () => {
    const range = (world: World, from: number, to: number) => ({
      from: world.clock.now() + from * minuteMs,
      to: world.clock.now() + to * minuteMs,
    });

    it("starts the ticks of a range in their order, each after the end of the one before", async () => {
      const world = await scheduled(setup, { every: "1m", tickField: "t" }, "{}");
      await world.schedules.pause("s", "so that nothing else starts");
      const asked = range(world, -3, -1);
      await world.schedules.backfill("s", { ...asked, overlap: "queue" });
      await world.schedules.resume("s");
      const seen: string[] = [];
      for (let tick = 0; tick < 3; tick++) {
        await world.clock.advance(0);
        const task = await world.claim("a");
        expect(await world.claim("a")).toBeUndefined();
        seen.push((await world.run(task?.runId as string)).input);
        await world.board.complete(holdOf(task), "1");
      }
      await world.clock.advance(0);
      expect(seen).toEqual([0, 1, 2].map((at) => `{"t":"${new Date(asked.from + at * minuteMs).toISOString()}"}`));
      expect((await shown(world)).backfill).toBeNull();
    });

    it("may start all of them at once, but none a second time", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "allow" });
      await world.clock.advance(2 * minuteMs);
      await world.schedules.backfill("s", { ...range(world, -3, 0), overlap: "allow" });
      await world.clock.advance(1);
      expect(await workOff(world)).toBe(4);
      expect((await shown(world)).history.filter(({ outcome }) => outcome === "present").length).toBe(2);
    });

    it("does not change the regular ticks", async () => {
      const world = await scheduled(setup);
      await world.schedules.backfill("s", { ...range(world, -2, -1), overlap: "queue" });
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(3);
    });

    it("can be ended, and a second one must wait for it", async () => {
      const world = await scheduled(setup, { every: "1m", overlap: "allow" });
      const asked = { ...range(world, -10, -1), overlap: "queue" as const };
      await world.schedules.backfill("s", asked);
      await world.clock.advance(1);
      await expect(world.schedules.backfill("s", asked)).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      expect(await world.schedules.endBackfill("s")).toMatchObject({ backfill: null });
      await world.clock.advance(1);
      expect(await workOff(world)).toBe(1);
    });

    it("is refused for too many ticks and for a range that is not in the past", async () => {
      const world = await scheduled(setup);
      const ask = (from: number, to: number) => world.schedules.backfill("s", { ...range(world, from, to), overlap: "queue" });
      await expect(ask(-1_001, -1)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
      await expect(ask(-1, 1)).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      await expect(ask(-1, -2)).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      expect(await ask(-1_000, -1)).toMatchObject({ backfill: { total: 1_000 } });
    });
  });

  describe("a store that cannot be written", () => {
    it("delays a tick, and starts one run for it", async () => {
      const world = await scheduled(setup);
      world.probe.before = () => {
        throw diskFull();
      };
      await world.clock.advance(minuteMs + 5_000);
      world.probe.before = undefined;
      await world.clock.advance(5_000);
      expect(await workOff(world)).toBe(1);
      expect((await shown(world)).history.map(({ outcome }) => outcome)).toEqual(["started"]);
    });
  });
}
