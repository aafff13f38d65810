import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Disk, openDisk } from "./simulation-disk.ts";
import type { FunctionPlant } from "./simulation-function-plants.ts";
import { playFunctions } from "./simulation-functions.ts";
import { functionsSuite, trouble } from "./simulation-functions-suite.ts";

functionsSuite(1, 40, 2);

/** Among the seeds that the correct engine passes. */
const seedsMax = 40;

describe("the simulation of functions", () => {
  let disk: Disk;
  beforeAll(async () => {
    disk = await openDisk();
  });
  afterAll(() => disk.close());

  it.each<[FunctionPlant, RegExp]>([
    ["results in another order", /does not match the journal|had the result|expected \[|waits for nothing that the server knows/],
    ["another value of a side effect", /the result is .*false.*expected/],
    ["a lost command", /has not ended|waits for nothing that the server knows/],
    ["lost commits", /FOREIGN KEY|had the result|the function got answer|is gone|has not ended/],
  ])("finds a planted fault: %s", async (plant, told) => {
    let found: string | undefined;
    for (let seed = 1; seed <= seedsMax && found === undefined; seed++)
      await playFunctions(seed, disk, { ...trouble, plant }).catch((error: Error) => {
        found = error.message.split("\n")[0];
      });
    expect(found).toMatch(told);
  });
});
