// The statistics of the server: numbers of runs, figures over time, groups of errors.

import { z } from "zod";
import { runStates, time } from "./shapes.ts";

const count = z.number().int();

export const countsShape = z
  .object({
    items: z.array(z.object({ workflow: z.string().optional(), state: z.enum(runStates).optional(), count })),
    total: count.describe("All stored runs."),
    left: count.describe("How many workflows are left out of the list; they are those with the fewest runs."),
  })
  .meta({ id: "Counts" });

const columns = <Name extends string>(names: readonly Name[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, z.array(count)])) as Record<Name, z.ZodArray<typeof count>>);

const quantiles = z.object({ p50: z.array(count.nullable()), p95: z.array(count.nullable()), p99: z.array(count.nullable()) });

export const statsShape = z
  .object({
    from: time.describe("When the first sample begins."),
    stepMs: count.describe("How long each sample is."),
    since: time.describe("When this server began to count."),
    counts: columns(["started", "succeeded", "failed", "cancelled", "timedOut", "claimed", "attemptsFailed"]).describe(
      "What happened in each sample: runs that started and ended, tasks handed out, attempts that failed, timed out or were lost.",
    ),
    gauges: columns(["ready", "held", "workers"]).describe(
      "The values at the end of each sample: tasks that could be taken, tasks held, live workers. A lane has only `ready`, a workflow none of them.",
    ),
    times: z
      .object({ wait: quantiles, work: quantiles })
      .describe("Milliseconds that tasks waited and attempts worked; for a workflow, how long its runs took. Null where there was none."),
  })
  .describe("Columns of equal length, the oldest sample first. The last one is not complete.")
  .meta({ id: "Stats" });

export const errorGroupsShape = z
  .object({
    items: z.array(
      z.object({
        group: z.string().describe("The common text of the errors, without numbers, ids, quoted texts and paths."),
        error: z.string().describe("The first line of the newest."),
        count,
        firstAt: time.describe("The end of the first known run with this error."),
        lastAt: time,
        workflows: z.array(z.string()).describe("Up to 20."),
        runId: z.string().describe("The newest run."),
      }),
    ),
    runs: count.describe("Runs of all groups."),
  })
  .meta({ id: "ErrorGroups" });
