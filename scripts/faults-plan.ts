// What the parameters of `npm run faults` mean for vitest.
import { parseArgs } from "node:util";

const folder = "packages/longshore/test/faults";

/** Far above what a night can play. */
const seedsMax = 10_000_000;

export function planFaults(given: readonly string[]): { parameters: string[]; env: Record<string, string> } | { wrong: string } {
  if (given[0] !== "sweep") return { parameters: [...given], env: {} };
  const options = { seeds: { type: "string" as const } };
  let seeds: string | undefined;
  try {
    seeds = parseArgs({ args: given.slice(1), options }).values.seeds;
  } catch (error) {
    return { wrong: `${(error as Error).message} Expected npm run faults -- sweep [--seeds NUMBER].` };
  }
  if (seeds === undefined) return { parameters: [`${folder}/sweep.faults.test.ts`], env: {} };
  if (!/^\d+$/.test(seeds) || Number(seeds) < 1 || Number(seeds) > seedsMax)
    return { wrong: `--seeds is ${JSON.stringify(seeds)}, expected a whole number from 1 to ${seedsMax}.` };
  return {
    parameters: [`${folder}/sweep.faults.test.ts`, `${folder}/simulation.faults.test.ts`],
    env: { LONGSHORE_SIM_SEEDS: seeds },
  };
}
