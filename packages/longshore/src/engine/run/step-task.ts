// Where a step of a run is recorded.

import type { Engine } from "../../server/engine.ts";
import { taskIdOf } from "./run.ts";

/** The task of a step, begun or not; undefined when the run has no such step, or there is no such run. */
export async function taskOfStep(
  { runs, plan }: Pick<Engine, "runs" | "plan">,
  runId: string,
  stepId: string,
): Promise<string | undefined> {
  const run = await runs.run(runId);
  const definition = run === undefined ? undefined : await runs.definitionById(run.definitionId);
  const node = definition === undefined ? undefined : plan(definition).index.get(stepId);
  return node === undefined ? undefined : taskIdOf(runId, node);
}
