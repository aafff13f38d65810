// The data of a run of this dialect besides its input, and the names under which Conductor's documents are stored.

import type { Run } from "../../../engine/run/run.ts";

/** The kinds of documents: task definitions and event handlers by name, and workflow definitions and schemas by name and version. */
export const documentKinds = {
  task: "conductor-task",
  workflow: "conductor-workflow",
  schema: "conductor-schema",
  eventHandler: "conductor-event-handler",
} as const;

export interface Settings {
  /** The workflow's own version number. */
  readonly version: number;
  /** 0 to 99, larger first. The run's `priority` is its negative. */
  readonly priority: number;
  readonly correlationId?: string;
  /** The domains of tasks by type; `*` for every type. */
  readonly taskToDomain?: { readonly [taskType: string]: string };
  readonly createdBy?: string;
  readonly event?: string;
  readonly idempotencyKey?: string;
  /** The run whose step started this one. */
  readonly parentWorkflowId?: string;
  readonly parentWorkflowTaskId?: string;
  /** The run's input is quoted (quoting.ts). Absent when quoting does not change the input. */
  readonly quotedInput?: true;
  /** Of a test: the reference names of the tasks that get their results from it. */
  readonly mocked?: readonly string[];
  /** The number of runs above it; absent for none. */
  readonly depth?: number;
}

const plain: Settings = { version: 1, priority: 0 };

/**
 * Conductor workers may also run tasks of other dialects, whose runs have other settings. A run without Conductor's settings gets the
 * defaults.
 */
export function settingsOf(run: Pick<Run, "settings">): Settings {
  return run.settings === null ? plain : { ...plain, ...(JSON.parse(run.settings) as Partial<Settings>) };
}
