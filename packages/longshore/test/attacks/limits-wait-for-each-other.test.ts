// Workflows with start limits run each other as child runs. Each child run waits for a run whose own child run waits for it: none of
// them ended. Random definitions and orders, with retries that exceed a limit: at the end, every run has ended.

import { expect, it } from "vitest";
import type { Json } from "../../src/core/json/json.ts";
import { isRunOpen } from "../../src/engine/run/run.ts";
import type { Order } from "../../src/engine/run/store.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import { type Random, seededRandom } from "../faults/random.ts";
import { openRunWorld, type RunWorld } from "../support/run-world.ts";

const workflows = ["p", "q", "r"];
const actionsMax = 50;
/** Each round ends at least one run. */
const roundsMax = 300;
const forEnded = ["retry", "restart", "rerun"];

const ref = (...path: string[]) => ({ $ref: { path } });

async function define(world: RunWorld, random: Random): Promise<void> {
  const named = workflows.map((name) => {
    const keyed = random.chance(0.6) ? { key: "k" } : {};
    const limit = { runs: random.pick([1, 1, 2]), ...keyed, overlap: random.pick(["queue", "queue", "queue", "skip", "cancel-previous"]) };
    const children = workflows.map((child) => {
      const after = random.chance(0.7) ? ["a"] : [];
      return { id: `run-${child}`, workflow: child, input: ref("inputs", child), when: ref("runs", child), after };
    });
    const steps = [{ id: "a", task: "a", input: null }, ...children];
    return { name, output: null, steps, ...(random.chance(0.85) ? { limit } : {}) };
  });
  // Each of them runs the others, and a definition may name only workflows that are there.
  for (const source of named.map((each) => ({ ...each, steps: [] })).concat(named as never))
    await world.runs.define({ name: source.name, dialect: "code", source: JSON.stringify(source) });
}

/** Which child runs a run starts, with their inputs. */
function makeInput(random: Random, depth: number): Json {
  const picked = workflows.map((name) => [name, depth > 0 && random.chance(0.4)] as const);
  const inputs = picked.map(([name, isPicked]) => [name, isPicked ? makeInput(random, depth - 1) : null] as const);
  return { k: random.between(1, 2), runs: Object.fromEntries(picked), inputs: Object.fromEntries(inputs) };
}

async function work(world: RunWorld): Promise<boolean> {
  const task = await world.poll("a");
  if (task !== undefined) await world.board.complete({ taskId: task.id, grant: task.grant }, "1");
  return task !== undefined;
}

async function act(world: RunWorld, random: Random, hasOrders: boolean): Promise<void> {
  const drawn = random.next();
  if (drawn < 0.35) {
    const workflow = random.pick(workflows) as string;
    await world.runs.start({ workflow, input: JSON.stringify(makeInput(random, 2)) });
  } else if (drawn < 0.78 || !hasOrders) await work(world);
  else {
    const kind = random.pick(["pause", "resume", "cancel", ...forEnded]) as string;
    const run = random.pick(world.allRuns().filter(({ state }) => isRunOpen(state) !== forEnded.includes(kind)));
    const order = { kind, ...(kind === "rerun" ? { node: random.between(0, 3) } : {}) } as Order;
    // A run that has ended is retried only while the limit allows it.
    if (run !== undefined) await world.runs.tell(run.id, order).catch(({ code }) => expect(code).toBe("LONGSHORE_CONFLICT"));
  }
}

async function play(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const world = await openRunWorld({ dialects: [codeDialect] });
  await define(world, random);
  const hasOrders = random.chance(0.5);
  for (let at = 0; at < actionsMax; at++) {
    if (hasOrders && random.chance(0.03)) await world.restart();
    await Promise.all(Array.from({ length: random.chance(0.3) ? 3 : 1 }, () => act(world, random, hasOrders)));
    if (random.chance(0.7)) await world.settle();
  }
  const isOver = () => world.allRuns().every(({ state }) => !isRunOpen(state));
  for (let round = 0; round < roundsMax && !isOver(); round++) {
    for (const { id, state } of world.allRuns()) if (state === "paused") await world.runs.tell(id, { kind: "resume" });
    await world.settle();
    while (await work(world));
    await world.settle();
  }
  const open = world.allRuns().filter(({ state }) => isRunOpen(state));
  expect({ seed, open: open.map(({ id, turn }) => ({ id, turn })), gates: world.gates() }).toEqual({ seed, open: [], gates: [] });
  expect(world.findings()).toEqual([]);
}

// Seed 52 retries a child run beyond the limit while another child run waits.
it.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 52])("runs whose child runs wait for each other end (seed %i)", play);
