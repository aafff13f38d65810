import { expect, it } from "vitest";
import { planFaults } from "./faults-plan.ts";

const folder = "packages/longshore/test/faults";

it("without parameters, and with those that it does not know, everything is vitest's", () => {
  expect(planFaults([])).toEqual({ parameters: [], env: {} });
  expect(planFaults(["disk", "-t", "full"])).toEqual({ parameters: ["disk", "-t", "full"], env: {} });
});

it("the sweep is played alone, or with so many seeds of the simulation", () => {
  expect(planFaults(["sweep"])).toEqual({ parameters: [`${folder}/sweep.faults.test.ts`], env: {} });
  expect(planFaults(["sweep", "--seeds", "10000"])).toEqual({
    parameters: [`${folder}/sweep.faults.test.ts`, `${folder}/simulation.faults.test.ts`],
    env: { LONGSHORE_SIM_SEEDS: "10000" },
  });
});

it("a wrong number of seeds, or another parameter of the sweep, is refused with what is expected", () => {
  for (const seeds of ["0", "many", "-1", "99999999999"]) expect(planFaults(["sweep", `--seeds=${seeds}`])).toHaveProperty("wrong");
  expect(planFaults(["sweep", "--fast"])).toHaveProperty("wrong");
  expect(planFaults(["sweep", "--seeds=x"])).toEqual({ wrong: '--seeds is "x", expected a whole number from 1 to 10000000.' });
});
