import { expect, it } from "vitest";
import { planFaults } from "./faults-plan.ts";

const folder = "packages/longshore/test/faults";

it("without parameters, and with unknown ones, all parameters are passed to vitest", () => {
  expect(planFaults([])).toEqual({ parameters: [], env: {} });
  expect(planFaults(["disk", "-t", "full"])).toEqual({ parameters: ["disk", "-t", "full"], env: {} });
});

it("the sweep runs alone, or with a number of seeds of the simulation", () => {
  expect(planFaults(["sweep"])).toEqual({ parameters: [`${folder}/sweep.faults.test.ts`], env: {} });
  expect(planFaults(["sweep", "--seeds", "10000"])).toEqual({
    parameters: [`${folder}/sweep.faults.test.ts`, `${folder}/simulation.faults.test.ts`],
    env: { LONGSHORE_SIM_SEEDS: "10000" },
  });
});

it("a wrong number of seeds, or an unknown parameter of the sweep, is refused with what is expected", () => {
  for (const seeds of ["0", "many", "-1", "99999999999"]) expect(planFaults(["sweep", `--seeds=${seeds}`])).toHaveProperty("wrong");
  expect(planFaults(["sweep", "--fast"])).toHaveProperty("wrong");
  expect(planFaults(["sweep", "--seeds=x"])).toEqual({ wrong: '--seeds is "x", expected a whole number from 1 to 10000000.' });
});
