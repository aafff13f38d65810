// Where a task of the server comes from: its task in the definition, and its run.

import { LaneFailure } from "../../../../engine/board/lane-worker.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { RunHead } from "../../../../engine/run/run.ts";
import type { ProtocolEngine } from "../../../server-half.ts";
import type { WorkflowDef, WorkflowTask } from "../../dialect/model.ts";
import { definitionOf } from "../../dialect/records.ts";
import { type Settings, settingsOf } from "../../dialect/settings.ts";

export interface Origin {
  readonly task: WorkflowTask;
  readonly run: RunHead;
  readonly settings: Settings;
  readonly definition: WorkflowDef;
}

/** Throws a LaneFailure when there is none. */
export async function originOf(
  { reader, plan }: Pick<ProtocolEngine, "reader" | "plan">,
  { id, runId, node }: Pick<TaskRow, "id" | "runId" | "node">,
): Promise<Origin> {
  const run = runId === null ? undefined : await reader.runHead(runId);
  const stored = run === undefined ? undefined : await reader.definitionById(run.definitionId);
  const compiled = stored === undefined ? undefined : plan(stored);
  // The evaluation of a condition is a hidden node of its loop.
  const task = compiled?.nodes[node]?.origin as WorkflowTask | null | undefined;
  if (run === undefined || compiled === undefined || task === undefined || task === null)
    throw new LaneFailure({ error: `task ${id} is in no definition`, retryable: false });
  return { task, run, settings: settingsOf(run), definition: definitionOf(compiled) };
}
