// Tasks whose parts the contracts read and write.

import type { NewPart } from "../../src/engine/part/store.ts";
import type { Setup } from "./store.ts";
import { holdOf, policy, type World } from "./world.ts";

export function part(uid: string, value: unknown = uid): NewPart {
  return { uid, value: JSON.stringify(typeof value === "number" && uid.startsWith("u") ? uid : value) };
}

export function uids(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `u${at + 1}`);
}

export async function held(setup: Setup) {
  const world = await setup();
  await world.post("t", { policy: policy({ failures: 3, lost: 3 }) });
  return { world, hold: holdOf(await world.claim()) };
}

export async function sequences(world: World, after: number, limit: number): Promise<number[]> {
  return (await world.parts.read("t", after, limit)).parts.map(({ sequence }) => sequence);
}
