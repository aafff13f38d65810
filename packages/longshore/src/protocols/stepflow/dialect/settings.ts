// What a run of a flow carries beside its input and variables.

import type { Run } from "../../../engine/run/run.ts";

export interface FlowSettings {
  /** The flow as it was stored; a run with overrides has a definition of its own. */
  readonly flowId: string;
  /** Steps in flight at once, over the run and all that share its `limitKey`. */
  readonly maxConcurrency: number;
  /** Under which key steps in flight are counted; the run's own when absent. The items of one run share theirs. */
  readonly limitKey?: string;
  /** It was started by a step or for an item of another run: it fails as soon as a step of it did, whatever its output is. */
  readonly sub?: boolean;
  /** The run that everything around it belongs to; the run itself when absent. */
  readonly rootRunId?: string;
  /** The run that started it, and the step that did where that is known. */
  readonly parentRunId?: string;
  readonly parentTaskId?: string;
  /** How many runs are around it. */
  readonly depth?: number;
  /** It has this many items, each a run of its own of this definition. */
  readonly items?: number;
  readonly itemDefinitionId?: string;
  /** It is a run for one item of another run. */
  readonly item?: number;
}

/** Of the reference. */
export const maxConcurrencyDefault = 10;

const plain: FlowSettings = { flowId: "", maxConcurrency: maxConcurrencyDefault };

export function settingsOf(run: Pick<Run, "settings">): FlowSettings {
  return run.settings === null ? plain : { ...plain, ...(JSON.parse(run.settings) as Partial<FlowSettings>) };
}

/** The settings of a new run that is to be like this one: it has no parent. */
export function rerunFields(run: Run): { settings: string; variables: string | null } {
  const { flowId, maxConcurrency, items, itemDefinitionId } = settingsOf(run);
  const kept: FlowSettings = { flowId, maxConcurrency, ...(items === undefined ? {} : { items, itemDefinitionId }) };
  return { settings: JSON.stringify(kept), variables: run.variables };
}
