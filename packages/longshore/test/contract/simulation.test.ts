import { describe, expect, it } from "vitest";
import { simulate, traceOf } from "./simulation.ts";
import { openDisk } from "./simulation-disk.ts";
import { simulationSuite } from "./simulation-suite.ts";

// The seeds are divided among two files, so that two processes can share the work.
simulationSuite(1, 1_000);

describe("the simulation itself", () => {
  it("runs a seed in the same way each time", async () => {
    const disk = await openDisk();
    const first = await traceOf(7, disk);
    await traceOf(8, disk);
    expect(await traceOf(7, disk)).toEqual(first);
    expect(first.length).toBeGreaterThan(100);
    disk.close();
  });

  it("detects a disk that confirms writes that it has not made, and reports the seed and the steps", async () => {
    const disk = await openDisk();
    const told: string[] = [];
    for (let seed = 1; seed <= 20; seed++) await simulate(seed, disk, { lies: true }).catch((error: Error) => told.push(error.message));
    // In some seeds no caller got a response for an unwritten change, and then nothing is lost.
    expect(told.length).toBeGreaterThan(15);
    for (const message of told) expect(message).toMatch(/^Seed \d+: .*LONGSHORE_SIM_SEED=\d+\.\n\d+ /);
    disk.close();
  });
});
