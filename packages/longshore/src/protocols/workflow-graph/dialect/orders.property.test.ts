// Any graph of jobs has the same meaning under any operator commands (orders.ts).

import { describe } from "vitest";
import type { Random } from "../../../../test/faults/random.ts";
import { earlier, readingOf, waitForDone } from "../../../../test/support/graph-reading.ts";
import { playOrders } from "../../../../test/support/orders.ts";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import { commandLane, workflowGraphDialect } from "./compile.ts";
import { dialectName, encodeSource, type GraphJob, plainJob } from "./source.ts";

const labels = ["gpu", "linux"];

function makeJob(random: Random, at: number): GraphJob {
  return {
    ...plainJob(`s${at}`, "true"),
    depends_on: earlier(random, at),
    required_labels: labels.filter(() => random.chance(0.2)),
    max_retries: random.between(0, 2),
    max_lost_leases: random.between(0, 2),
    backoff: random.pick(["None", { Fixed: { delay_secs: 5 } }, { Exponential: { base_secs: 2, max_secs: 10 } }] as const) ?? "None",
    timeout_secs: random.chance(0.2) ? 20 : null,
    priority: random.between(-1, 1),
    skip: random.chance(0.1),
  };
}

describe("under any operator commands", () => {
  playOrders("a graph of jobs means the same", { seeds: 60 }, async (random) => {
    const world = await openRunWorld({ dialects: [workflowGraphDialect], sliceTasks: 1 });
    const jobs = Array.from({ length: random.between(2, 9) }, (_, at) => makeJob(random, at));
    const source = encodeSource({ name: "w", trigger: "manual", jobs });
    const steps = jobs.map(({ id, depends_on, skip }) => ({
      name: id,
      turn: (before: Parameters<typeof waitForDone>[1]) => waitForDone(depends_on, before),
      isOff: () => skip,
    }));
    return {
      world,
      told: source,
      lanes: [{ name: commandLane, labels }],
      async begin() {
        await world.runs.define({ name: "w", dialect: dialectName, source });
        for (let count = 0; count < 2; count++) await world.runs.start({ workflow: "w", input: "{}" });
      },
      faultIn: (run, records, known) => readingOf(steps, run, records, known),
      steps: () => jobs.map(({ id }) => id),
      waits: () => false,
    };
  });
});
