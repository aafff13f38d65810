// A run of a durable function and its worker, for the contract suites of durable functions.

import { expect } from "vitest";
import { type Command, functionLane, type Turn, type TurnReport } from "../../src/core/turn.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Setup } from "./store.ts";
import { holdOf, turns, type World } from "./world.ts";

export const lane = functionLane("f");
export const own = functionLane("f", "w");

/** A run of the function `f`, and what its worker does. */
export async function begin(setup: Setup) {
  const world = await setup();
  await world.runs.define({ name: "f", dialect: "function", source: JSON.stringify({ name: "f", function: true }) });
  const { run } = await world.runs.start({ workflow: "f", input: '{"n":1}' });
  return { world, id: run.id, ...worker(world) };
}

function worker(world: World) {
  let number = 0;
  const take = async (names = [lane, own]) => {
    await turns();
    const task = await world.claim(names, { holder: "w" });
    return task === undefined ? undefined : { task, turn: JSON.parse(task.input) as Turn };
  };
  const report = (task: TaskRow | undefined, commands: readonly Partial<Command>[] = [], parts: Partial<TurnReport> = {}) => {
    const whole = commands.map((command) => ({ kind: "step", name: "s", after: 0, ...command }));
    return world.board.complete(holdOf(task), JSON.stringify({ by: `w-${++number}`, commands: whole, ...parts }));
  };
  /** Takes a turn and reports it. */
  const turn = async (commands: readonly Partial<Command>[] = [], parts: Partial<TurnReport> = {}) => {
    const taken = await take();
    expect(await report(taken?.task, commands, parts)).toBe("ok");
    return taken?.turn;
  };
  const done = async (name: string, output: string) => world.board.complete(holdOf(await world.claim(name)), output);
  return { take, report, turn, done };
}

/** The number, state and output of the first commands. */
export function journalOf(world: World, runId: string, commands: number): Promise<unknown[]> {
  const nodes = Array.from({ length: commands }, (_, at) => at + 1);
  return Promise.all(nodes.map((node) => world.task(`${runId}.${node}`).then(({ ordinal, state, output }) => [ordinal, state, output])));
}
