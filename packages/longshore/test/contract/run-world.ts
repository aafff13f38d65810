import { holdOf, type World } from "./world.ts";

export const ref = (id: string, ...path: string[]) => ({ $ref: { step: id, path } });

/** Claims one task from the lane and completes it. */
export async function work(world: World, lane: string, output = "1"): Promise<void> {
  const verdict = await world.board.complete(holdOf(await world.claim(lane)), output);
  if (verdict !== "ok") throw new Error(`The task on ${lane} was not completed: ${verdict}.`);
}

export async function fail(world: World, lane: string): Promise<void> {
  await world.board.fail(holdOf(await world.claim(lane)), { error: "boom", retryable: false });
}
