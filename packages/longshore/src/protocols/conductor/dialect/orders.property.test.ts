// Any definition of Conductor under any orders means the same (orders.ts): exactly the tasks have begun that a plain reading of it expects.

import { describe } from "vitest";
import { everyTask, faultIn, keys, lanes, makePlan, type PlanTask } from "../../../../test/support/conductor-plans.ts";
import { openConductor } from "../../../../test/support/conductor-world.ts";
import { playOrders } from "../../../../test/support/orders.ts";
import type { Run } from "../../../engine/run/run.ts";

describe("under any orders", () => {
  playOrders("a definition of Conductor means the same", { seeds: 160, found: [2521, 2636] }, async (random) => {
    // Records are ended and made void one by one, so that orders meet runs of which only some are.
    const world = await openConductor({ sliceTasks: 1 });
    const plans: { readonly [workflow: string]: PlanTask[] } = { inner: makePlan(random, null), w: makePlan(random, "inner") };
    const planOf = ({ workflow }: Run) => plans[workflow] as PlanTask[];
    return {
      world,
      told: JSON.stringify(plans),
      lanes: lanes.map((name) => ({ name })),
      async begin() {
        world.workflow({ name: "inner", tasks: plans.inner });
        await world.start(plans.w as PlanTask[], { input: { key: random.pick(keys) as string } });
      },
      faultIn: (run, records) => faultIn(planOf(run), run, records),
      steps: (run, order) =>
        [...everyTask(planOf(run))]
          .filter(({ type }) => order === "rerun" || type !== "FORK_JOIN")
          .map(({ taskReferenceName }) => taskReferenceName),
      waits: (run, { step }) => [...everyTask(planOf(run))].some((task) => task.taskReferenceName === step && task.type === "WAIT"),
    };
  });
});
