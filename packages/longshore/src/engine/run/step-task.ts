// Finds the task of a run's step.

import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import type { Reader } from "./reader.ts";
import { taskIdOf } from "./run.ts";
import type { Runs } from "./runs.ts";

export interface StepTaskDeps {
  readonly runs: Pick<Runs, "run" | "definitionById">;
  readonly reader: Pick<Reader, "heads">;
  plan(definition: Definition): Plan;
}

/** The task id of a step, started or not; undefined when there is no such step or run. */
export async function taskOfStep({ runs, reader, plan }: StepTaskDeps, runId: string, stepId: string): Promise<string | undefined> {
  const run = await runs.run(runId);
  const definition = run === undefined ? undefined : await runs.definitionById(run.definitionId);
  return definition === undefined ? undefined : stepTaskIn(reader, plan(definition), { runId, stepId });
}

/** The same in a known plan. Commands of a durable function are not in its plan, so their rows are searched. */
export async function stepTaskIn(
  reader: Pick<Reader, "heads">,
  plan: Plan,
  { runId, stepId }: { runId: string; stepId: string },
): Promise<string | undefined> {
  const node = plan.index.get(stepId);
  if (node !== undefined) return taskIdOf(runId, node);
  if (!plan.driven) return undefined;
  const named = (await reader.heads(runId)).filter(({ step }) => step === stepId);
  // After a restart, the row may be that of another command in the life before.
  return (named.find(({ state }) => state !== "forgotten") ?? named[0])?.id;
}
