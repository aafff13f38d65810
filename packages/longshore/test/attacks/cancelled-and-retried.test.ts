// Stepflow runs with several items start further runs with items. They are cancelled and retried at random times while workers work on
// them. In the end the caller lets the run continue. Then the work of every item is done, and no run of the family stays open.

import { expect, it } from "vitest";
import { type Random, seededRandom } from "../faults/random.ts";
import { oneStep, type StepflowServer, startStepflow } from "../support/stepflow-server.ts";

const rounds = 25;
const retriesMax = 12;
const completed = 2;
const inputs = [[1, 2, 3], [4, 5], [6]];
const leaf = oneStep("/leaf", { $input: "$" });
const mapped = oneStep("/builtin/map", { workflow: { $literal: leaf }, items: { $input: "$" } });

async function flowIdOf(server: StepflowServer, kind: string): Promise<string> {
  const flowId = await server.store(mapped);
  return kind === "map" ? flowId : server.store(oneStep("/builtin/eval", { flow_id: flowId, input: { $input: "$" } }));
}

/** Works on tasks until it is stopped, and reports some of them late. */
async function work({ engine: { board } }: StepflowServer, random: Random, stop: AbortSignal): Promise<void> {
  const reach = { names: ["leaf"], labels: [] };
  while (!stop.aborted) {
    const [task] = await board.claim({ reach, serves: "leaf", holder: "worker", termMs: 600_000, waitMs: 60_000, signal: stop });
    if (task === undefined) continue;
    await someTurns(random, 4);
    await board.complete({ taskId: task.id, grant: task.grant }, JSON.stringify({ done: JSON.parse(task.input) }));
  }
}

async function someTurns(random: Random, max: number): Promise<void> {
  for (let left = random.between(0, max); left > 0; left--) await new Promise((resolve) => setImmediate(resolve));
}

async function disturb(order: (what: "cancel" | "retry") => Promise<unknown>, random: Random): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const orders = [order("cancel")];
    await someTurns(random, 6);
    orders.push(order("retry"));
    if (random.chance(0.5)) orders.push(order("cancel"), order("retry"));
    await Promise.all(orders);
  }
}

it.each(["map", "eval"].flatMap((kind) => [1, 2, 3, 4, 5, 6].map((seed) => [kind, seed] as const)))(
  "a batch with steps of %s completes all its work, seed %i",
  async (kind, seed) => {
    const random = seededRandom(seed);
    const server = await startStepflow();
    const run = await server.submit(await flowIdOf(server, kind), inputs);
    const stop = new AbortController();
    const workers = [1, 2].map(() => work(server, random, stop.signal));
    const order = (what: "cancel" | "retry") => server.call("POST", `/runs/${run}/${what}`);
    await disturb(order, random);
    for (let tries = 0; (await server.ended(run)).summary.status !== completed && tries < retriesMax; tries++) await order("retry");
    stop.abort();
    await Promise.all(workers);
    const done = JSON.stringify((await server.call("GET", `/runs/${run}/items`)).body).match(/"done":\d/g);
    expect(done?.sort()).toEqual(inputs.flat().map((each) => `"done":${each}`));
    const { items: open } = await server.engine.reader.runHeads({ state: "running", limit: 100 });
    expect(open).toEqual([]);
  },
);
