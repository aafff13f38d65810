// Schedules on the store: what a change of the rules keeps, the schedules of a definition file, and removal.

import { describe, expect, it } from "vitest";
import type { GivenRules } from "../../src/engine/schedule/rules.ts";
import { minuteMs, scheduled, shown, workOff } from "./schedule-world.ts";
import type { Setup } from "./store.ts";
import { step, type World } from "./world.ts";

export function scheduleChangesContract(setup: Setup): void {
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
}
