// Sorts what a module of the user exports into the kinds of values that commands and servers use. This is the only place that recognises
// them: a new kind is one more field of `ModuleExports`.

import { exportedTasks, exportedValues } from "./core/load.ts";
import type { Task } from "./core/task.ts";
import { workflowFamily } from "./core/workflow-family.ts";
import type { Schedule } from "./schedule.ts";
import type { Workflow } from "./workflow-value.ts";

export interface ModuleExports {
  readonly tasks: readonly Task[];
  readonly workflows: readonly Workflow[];
  readonly schedules: readonly Schedule[];
}

/** Each value once, by name, as default or in a list, in the order of the module. */
export function sortExports(module: Readonly<Record<string, unknown>>): ModuleExports {
  const values = exportedValues(module);
  return { tasks: exportedTasks(module), workflows: values.filter(isWorkflow), schedules: values.filter(isSchedule) };
}

/** Whether a module is of any use to a server or a worker. */
export function isEmpty({ tasks, workflows, schedules }: ModuleExports): boolean {
  return tasks.length + workflows.length + schedules.length === 0;
}

/** The workflows of modules, and those that they run or their schedules start. Each once, in the order in which they are to be defined. */
export function workflowsIn(modules: readonly Pick<ModuleExports, "workflows" | "schedules">[]): Workflow[] {
  const scheduled = modules.flatMap(({ schedules }) => schedules).map(({ workflow }) => workflow);
  return workflowFamily([...modules.flatMap(({ workflows }) => workflows), ...scheduled.filter((each) => typeof each !== "string")]);
}

/** Checks the shape, not the class: the file may have imported another copy of this package. */
function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== "object" || value === null) return false;
  const { name, source } = value as Partial<Workflow>;
  if (typeof name !== "string" || typeof source !== "object" || source === null) return false;
  return "function" in source || Array.isArray(source.steps);
}

function isSchedule(value: unknown): value is Schedule {
  if (typeof value !== "object" || value === null) return false;
  const { name, rules } = value as Partial<Schedule>;
  return typeof name === "string" && typeof rules === "object" && typeof rules?.workflow === "string";
}
