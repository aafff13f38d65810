// The data of a run of a flow, in addition to its input and variables.

import type { Run } from "../../../engine/run/run.ts";

export interface FlowSettings {
  /** The id of the stored flow. A run with overrides has its own definition. */
  readonly flowId: string;
  /** Maximum number of steps in flight, in the run and all runs with the same `limitKey`. */
  readonly maxConcurrency: number;
  /** The key under which steps in flight are counted. Default: the run's own. The items of one run share a key. */
  readonly limitKey?: string;
  /** A step, or an item of another run, started it. It fails if one of its steps failed, even if its output has a value. */
  readonly sub?: boolean;
  /** The root of the run's family. Default: the run itself. */
  readonly rootRunId?: string;
  /** The run that started it, and the step if it is known. */
  readonly parentRunId?: string;
  readonly parentTaskId?: string;
  /** How many runs are above it. */
  readonly depth?: number;
  /** The number of items; each item is a run of `itemDefinitionId`. */
  readonly items?: number;
  readonly itemDefinitionId?: string;
  /** The index of the item, when this is the run of an item. */
  readonly item?: number;
}

/** As in the reference. */
export const maxConcurrencyDefault = 10;

const plain: FlowSettings = { flowId: "", maxConcurrency: maxConcurrencyDefault };

export function settingsOf(run: Pick<Run, "settings">): FlowSettings {
  return run.settings === null ? plain : { ...plain, ...(JSON.parse(run.settings) as Partial<FlowSettings>) };
}

/** The settings of a new run like this one. It has no parent. */
export function rerunFields(run: Run): { settings: string; variables: string | null } {
  const { flowId, maxConcurrency, items, itemDefinitionId } = settingsOf(run);
  const kept: FlowSettings = { flowId, maxConcurrency, ...(items === undefined ? {} : { items, itemDefinitionId }) };
  return { settings: JSON.stringify(kept), variables: run.variables };
}
