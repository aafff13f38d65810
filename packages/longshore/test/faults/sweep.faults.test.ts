// The long form of the crash-point sweep: more rounds of the workload, so that crashes also happen with data of earlier rounds.
import { expect, it } from "vitest";
import { describeSweep, missingForSweep, sweep } from "./sweep.ts";

const ROUNDS = 4;
const SWEEP_MS_MAX = 1_800_000;

it(
  "a crash at any point of a long workload loses nothing that was acknowledged and does nothing twice",
  async (context) => {
    if (missingForSweep) return context.skip(`needs ${missingForSweep}`);
    const report = await sweep(ROUNDS);
    process.stdout.write(`${describeSweep(report)}\n`);
    expect(report.lost).toEqual([]);
    expect(report.duplicated).toEqual([]);
  },
  SWEEP_MS_MAX,
);
