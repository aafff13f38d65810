// Any Conductor definition has the same meaning under any operator commands (orders.ts): exactly those tasks have begun that a simple
// reference model expects.

import { describe } from "vitest";
import { everyTask, faultIn, keys, lanes, makePlan, type PlanTask, unfolded } from "../../../../test/support/conductor-plans.ts";
import { openConductor } from "../../../../test/support/conductor-world.ts";
import { playOrders } from "../../../../test/support/orders.ts";
import type { Run } from "../../../engine/run/run.ts";

/** `grows`: with loops and dynamic forks, and forks that are skipped by order. */
function storyOf(grows: boolean): Parameters<typeof playOrders>[2] {
  return async (random) => {
    // Records are ended and made void one by one: commands also arrive when only some of them are done.
    const world = await openConductor({ sliceTasks: 1 });
    const plans: { readonly [workflow: string]: PlanTask[] } = {
      inner: makePlan(random, null, grows),
      w: makePlan(random, "inner", grows),
    };
    const whole = Object.fromEntries(Object.entries(plans).map(([name, plan]) => [name, unfolded(plan)]));
    const planOf = ({ workflow }: Run) => whole[workflow] as PlanTask[];
    return {
      world,
      told: JSON.stringify(plans),
      lanes: lanes.map((name) => ({ name })),
      async begin() {
        world.workflow({ name: "inner", tasks: plans.inner });
        await world.start(plans.w as PlanTask[], { input: { key: random.pick(keys) as string } });
      },
      // Each output has a task and a hand-out of its own.
      output: ({ id, grant }) => JSON.stringify({ by: `${id}/${grant}` }),
      shown: (run) => world.tries(run),
      faultIn: (run, records, known) => faultIn(planOf(run), run, records, known),
      steps: (run, order) =>
        [...everyTask(planOf(run))]
          .filter(({ type }) => grows || order === "rerun" || type !== "FORK_JOIN")
          .map(({ taskReferenceName }) => taskReferenceName),
      waits: (run, { step }) => [...everyTask(planOf(run))].some((task) => task.taskReferenceName === step && task.type === "WAIT"),
    };
  };
}

describe("under any operator commands", () => {
  playOrders("a definition of Conductor means the same", { seeds: 160, found: [259, 555, 2521, 2636] }, storyOf(false));
  playOrders("a definition of Conductor that grows means the same", { seeds: 100 }, storyOf(true));
});
