// Finds the task of a run's step.

import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import { taskIdOf } from "./run.ts";
import type { Runs } from "./runs.ts";

export interface StepTaskDeps {
  readonly runs: Pick<Runs, "run" | "definitionById">;
  plan(definition: Definition): Plan;
}

/** The task id of a step, started or not; undefined when there is no such step or run. */
export async function taskOfStep({ runs, plan }: StepTaskDeps, runId: string, stepId: string): Promise<string | undefined> {
  const run = await runs.run(runId);
  const definition = run === undefined ? undefined : await runs.definitionById(run.definitionId);
  const node = definition === undefined ? undefined : plan(definition).index.get(stepId);
  return node === undefined ? undefined : taskIdOf(runId, node);
}
