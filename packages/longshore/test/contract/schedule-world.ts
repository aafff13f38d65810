// A world with one schedule, for the contract suites of schedules.

import type { GivenRules } from "../../src/engine/schedule/rules.ts";
import type { Schedule } from "../../src/engine/schedule/schedule.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, type World, type WorldOptions } from "./world.ts";

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
const every: Partial<GivenRules> = { every: "1m" };

export async function scheduled(setup: Setup, rules: Partial<GivenRules> = every, input = "null", options?: WorldOptions): Promise<World> {
  const world = await setup(options);
  await world.define("w", [step("a")]);
  await world.schedules.put({ name: "s", rules: { workflow: "w", ...rules }, input });
  return world;
}

export async function shown(world: World, name = "s"): Promise<Schedule> {
  const found = await world.schedules.get(name);
  if (found === undefined) throw new Error(`There is no schedule ${name}.`);
  return found;
}

/** The outcomes of ticks, oldest first: minutes since the start of the clock, and the outcome. */
export async function outcomes(world: World, since = 0): Promise<string[]> {
  const { history } = await shown(world);
  return history
    .map(({ at, outcome, count }) => `${(at - since) / minuteMs} ${outcome}${count === undefined ? "" : ` ${count}`}`)
    .reverse();
}

/** Claims and completes everything in the lane. Returns how many tasks there were. */
export async function workOff(world: World, lane = "a"): Promise<number> {
  let count = 0;
  for (let task = await world.claim(lane); task !== undefined; task = await world.claim(lane)) {
    await world.board.complete(holdOf(task), "1");
    await world.clock.advance(0);
    count++;
  }
  return count;
}
