// Schedules on the store: ticks, overlap, catching up, pauses, runs by hand, backfills, and what outlives the process.

import { describe, expect, it } from "vitest";
import type { GivenRules } from "../../src/engine/schedule/rules.ts";
import type { Schedule } from "../../src/engine/schedule/schedule.ts";
import { diskFull } from "./sqlite.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, type World, type WorldOptions } from "./world.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const every: Partial<GivenRules> = { every: "1m" };

async function scheduled(setup: Setup, rules: Partial<GivenRules> = every, input = "null", options?: WorldOptions): Promise<World> {
  const world = await setup(options);
  await world.define("w", [step("a")]);
  await world.schedules.put({ name: "s", rules: { workflow: "w", ...rules }, input });
  return world;
}

async function shown(world: World, name = "s"): Promise<Schedule> {
  const found = await world.schedules.get(name);
  if (found === undefined) throw new Error(`There is no schedule ${name}.`);
  return found;
}

/** The outcomes of ticks, oldest first: minutes since the start of the clock, and the outcome. */
async function outcomes(world: World, since = 0): Promise<string[]> {
  const { history } = await shown(world);
  return history
    .map(({ at, outcome, count }) => `${(at - since) / minuteMs} ${outcome}${count === undefined ? "" : ` ${count}`}`)
    .reverse();
}

/** Claims and completes everything in the lane. Returns how many tasks there were. */
async function workOff(world: World, lane = "a"): Promise<number> {
  let count = 0;
  for (let task = await world.claim(lane); task !== undefined; task = await world.claim(lane)) {
    await world.board.complete(holdOf(task), "1");
    await world.clock.advance(0);
    count++;
  }
  return count;
}

export function scheduleContract(setup: Setup, keeps: boolean): void {
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

  describe("changes of a schedule", () => {
    it("keep its position when its times are the same", async () => {
      const world = await scheduled(setup, { cron: "*/10 * * * *" });
      const before = await shown(world);
      const again = await world.schedules.put({ name: "s", rules: { workflow: "w", cron: "*/10  *  * * *" }, input: "null" });
      expect(again).toEqual({ created: false, schedule: before });
      const { schedule } = await world.schedules.put({
        name: "s",
        rules: { workflow: "w", cron: "*/10 * * * *", overlap: "allow" },
        input: "[1]",
      });
      expect(schedule).toMatchObject({ nextAt: before.nextAt, createdAt: before.createdAt, overlap: "allow" });
      await world.clock.advance(10 * minuteMs);
      expect((await world.run((await shown(world)).history[0]?.runId as string)).input).toBe("[1]");
    });

    it("with other times apply from now on", async () => {
      const world = await scheduled(setup);
      await world.clock.advance(30_000);
      const { schedule } = await world.schedules.put({ name: "s", rules: { workflow: "w", every: "7m" }, input: "null" });
      expect(schedule.nextAt).toBe(Math.ceil(world.clock.now() / (7 * minuteMs)) * 7 * minuteMs);
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(0);
    });

    it("are refused for an unknown workflow, and for days that never come", async () => {
      const world = await setup();
      const put = (rules: GivenRules) => world.schedules.put({ name: "s", rules, input: "null" });
      await expect(put({ workflow: "w", every: "1m" })).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
      await world.define("w", [step("a")]);
      await expect(put({ workflow: "w", cron: "0 0 30 2 *" })).rejects.toThrow("never comes");
      expect(await world.schedules.list({ limit: 10 })).toEqual({ items: [], next: null });
    });

    it("are refused when a downtime could make them start thousands of ticks at once", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const put = (rules: Partial<GivenRules>) =>
        world.schedules.put({ name: "s", rules: { workflow: "w", catchUp: "all", ...rules }, input: "null" });
      const refused = {
        code: "LONGSHORE_BAD_INPUT",
        message: expect.stringContaining("catchUpWindow is 86400000 ms, which has more than 2000 ticks"),
      };
      await expect(put({ every: "10s" })).rejects.toMatchObject(refused);
      await expect(put({ cron: "* * * * *", catchUpWindow: "2d" })).rejects.toThrow("more than 2000 ticks");
      await expect(put({ cron: "* * * * *" })).resolves.toMatchObject({ created: true });
      await expect(put({ every: "10s", catchUp: "last" })).resolves.toMatchObject({ created: false });
    });

    it("appear in lists by name, page by page, also of one workflow only", async () => {
      const world = await setup();
      for (const name of ["v", "w"]) await world.define(name, [step("a")]);
      for (const [name, workflow] of [
        ["c", "w"],
        ["a", "v"],
        ["b", "w"],
      ] as const)
        await world.schedules.put({ name, rules: { workflow, every: "1h" }, input: "null" });
      const names = async (page: { limit: number; after?: string; workflow?: string }) => {
        const { items, next } = await world.schedules.list(page);
        return [...items.map(({ name }) => name), next];
      };
      expect(await names({ limit: 2 })).toEqual(["a", "b", "b"]);
      expect(await names({ limit: 2, after: "b" })).toEqual(["c", null]);
      expect(await names({ limit: 2, workflow: "w" })).toEqual(["b", "c", null]);
    });
  });

  describe("the schedules of a definition file", () => {
    const declared = (...crons: string[]) =>
      crons.map((cron, at) => ({ name: `w:${at + 1}`, rules: { workflow: "w", cron }, input: "null" }));
    const names = async (world: World) =>
      (await world.schedules.list({ limit: 10 })).items.map(({ name, when }) => [name, "cron" in when && when.cron]);

    it("are those of its last version, and others stay", async () => {
      const world = await scheduled(setup);
      await world.schedules.declare("w", declared("0 1 * * *", "0 2 * * *"));
      expect(await names(world)).toEqual([
        ["s", false],
        ["w:1", "0 1 * * *"],
        ["w:2", "0 2 * * *"],
      ]);
      await world.schedules.declare("w", declared("0 3 * * *"));
      expect(await names(world)).toEqual([
        ["s", false],
        ["w:1", "0 3 * * *"],
      ]);
      await world.schedules.declare("w", []);
      expect(await names(world)).toEqual([["s", false]]);
    });

    it("keep their pause, and cannot be changed by other requests", async () => {
      const world = await scheduled(setup);
      await world.schedules.declare("w", declared("0 1 * * *"));
      await world.schedules.pause("w:1", "x");
      await world.schedules.declare("w", declared("0 2 * * *"));
      expect(await shown(world, "w:1")).toMatchObject({ paused: "x", when: { cron: "0 2 * * *" } });
      const put = world.schedules.put({ name: "w:1", rules: { workflow: "w", every: "1m" }, input: "null" });
      await expect(put).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      const taken = world.schedules.declare("w", [{ name: "s", rules: { workflow: "w", every: "1m" }, input: "null" }]);
      await expect(taken).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
    });
  });

  describe("removing a schedule", () => {
    it("ends its ticks, but not its runs", async () => {
      const world = await scheduled(setup);
      await world.clock.advance(minuteMs);
      expect(await world.schedules.remove("s")).toBe(true);
      expect(await world.schedules.remove("s")).toBe(false);
      await world.clock.advance(10 * minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("allows a new one with the same name and without a history", async () => {
      const world = await scheduled(setup);
      await world.clock.advance(minuteMs);
      await Promise.all([
        world.schedules.remove("s"),
        world.schedules.put({ name: "s", rules: { workflow: "w", every: "1m" }, input: "[2]" }),
      ]);
      expect(await shown(world)).toMatchObject({ history: [], input: "[2]" });
      await world.clock.advance(minuteMs);
      expect(await workOff(world)).toBe(2);
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

  if (keeps) restarts(setup);
}

function restarts(setup: Setup): void {
  const reopen = async (world: World, downMs: number): Promise<World> => {
    await world.close();
    await world.clock.advance(downMs);
    return setup({ place: world.place, clock: world.clock });
  };

  describe("a schedule after a downtime", () => {
    it("continues at its position", async () => {
      let world = await scheduled(setup);
      await world.clock.advance(90_000);
      world = await reopen(world, 20_000);
      expect(await workOff(world)).toBe(1);
      await world.clock.advance(10_000);
      expect(await workOff(world)).toBe(1);
    });

    it("starts the last of the ticks that it has missed, and counts the others", async () => {
      let world = await scheduled(setup);
      const start = world.clock.now();
      world = await reopen(world, 10 * minuteMs + 1);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual(["1 missed 9", "10 started"]);
      expect(await workOff(world)).toBe(1);
    });

    it("starts all of them in order when its rule requires this", async () => {
      let world = await scheduled(setup, { every: "1m", catchUp: "all", overlap: "allow" });
      const start = world.clock.now();
      world = await reopen(world, 5 * minuteMs);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual([1, 2, 3, 4, 5].map((minute) => `${minute} started`));
      expect(await workOff(world)).toBe(5);
    });

    it("does not start ticks that are older than its window", async () => {
      let world = await scheduled(setup, { every: "10m", catchUpWindow: "3m", catchUp: "all", overlap: "allow" });
      const start = world.clock.now();
      world = await reopen(world, 35 * minuteMs);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual(["10 missed 3"]);
      await world.clock.advance(5 * minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("finds its place among millions of missed ticks at once", async () => {
      let world = await scheduled(setup, { every: "1s" });
      world = await reopen(world, 300 * 24 * hourMs);
      await world.clock.advance(0);
      const [last, missed] = (await shown(world)).history;
      expect([last?.outcome, missed?.outcome, missed?.count]).toEqual(["started", "missed", 100]);
      expect(last?.at).toBe(Math.floor(world.clock.now() / 1_000) * 1_000);
    });

    it("continues with ticks that waited and with a backfill", async () => {
      let world = await scheduled(setup, { every: "1m", overlap: "queue" });
      const now = world.clock.now();
      await world.schedules.backfill("s", { from: now - 2 * minuteMs, to: now - minuteMs, overlap: "queue" });
      await world.clock.advance(2 * minuteMs);
      expect((await shown(world)).queued.length).toBe(1);
      await world.schedules.pause("s", "x");
      world = await reopen(world, 1);
      expect(await workOff(world)).toBe(2);
      await world.schedules.resume("s");
      for (let round = 0; round < 3; round++) {
        await world.clock.advance(0);
        await workOff(world);
      }
      expect(await shown(world)).toMatchObject({ queued: [], backfill: null });
    });

    it("returns to the present when its position comes from a clock that was wrong", async () => {
      const dayMs = 24 * hourMs;
      const first = await scheduled(setup, { every: "1d", overlap: "allow" });
      const start = first.clock.now();
      await first.clock.advance(40 * dayMs);
      expect((await shown(first)).lastAt).toBe(start + 40 * dayMs);
      await first.close();
      // The same store with a correct clock.
      const world = await setup({ place: first.place });
      expect(world.clock.now()).toBe(start);
      expect((await shown(world)).nextAt).toBe(start + dayMs);
      await world.clock.advance(dayMs);
      // Its run exists, from the time of the wrong clock.
      expect((await shown(world)).history[0]).toMatchObject({ outcome: "present", at: start + dayMs });
    });
  });
}
