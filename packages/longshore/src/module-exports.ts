// Sorts what a module of the user exports into the kinds of values that commands and servers use. This is the only place that recognises
// them: a new kind is one more field of `ModuleExports`.

import { exportedTasks, exportedValues } from "./core/load.ts";
import type { Task } from "./core/task.ts";
import type { Workflow } from "./workflow-value.ts";

export interface ModuleExports {
  readonly tasks: readonly Task[];
  readonly workflows: readonly Workflow[];
}

/** Each value once, by name, as default or in a list, in the order of the module. */
export function sortExports(module: Readonly<Record<string, unknown>>): ModuleExports {
  return { tasks: exportedTasks(module), workflows: exportedValues(module).filter(isWorkflow) };
}

/** Whether a module is of any use to a server or a worker. */
export function isEmpty({ tasks, workflows }: ModuleExports): boolean {
  return tasks.length === 0 && workflows.length === 0;
}

/** Checks the shape, not the class: the file may have imported another copy of this package. */
function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== "object" || value === null) return false;
  const { name, source } = value as Partial<Workflow>;
  if (typeof name !== "string" || typeof source !== "object" || source === null) return false;
  return "function" in source || Array.isArray(source.steps);
}
