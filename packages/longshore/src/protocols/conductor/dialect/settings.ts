// The data of a run of this dialect besides its input, and the names under which Conductor's documents are stored.

import type { Run } from "../../../engine/run/run.ts";

/** The newest task definition of a name, workflow definitions by name and version, schemas by name and version. */
export const documentKinds = { task: "conductor-task", workflow: "conductor-workflow", schema: "conductor-schema" } as const;

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
  /** The run's input is quoted (quoting.ts). Absent where it reads the same either way. */
  readonly quotedInput?: true;
  /** The number of runs above it; absent for none. */
  readonly depth?: number;
}

const plain: Settings = { version: 1, priority: 0 };

/** Runs of another dialect have other settings, and Conductor workers may run their tasks: absent settings are those of a plain run. */
export function settingsOf(run: Pick<Run, "settings">): Settings {
  return run.settings === null ? plain : { ...plain, ...(JSON.parse(run.settings) as Partial<Settings>) };
}
