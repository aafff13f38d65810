// Helper functions of the chapters about operators.
import type { Step } from "../../src/differential/script.ts";
import { operator, post, simple, workflow, workflowDef } from "./steps.ts";

export const TYPE = "op_task";
export const step = (ref: string, inputParameters: Record<string, unknown> = {}, more: Record<string, unknown> = {}) =>
  simple(TYPE, ref, inputParameters, more);

/** No worker polls in these chapters: a poll could return a task that an earlier run left in the queue. */
export const done = (name: string, ref: string, output: Record<string, unknown> = {}): Step =>
  post(name, `/tasks/{{wf}}/${ref}/COMPLETED`, output);

export const define = (...tasks: unknown[]): ReturnType<typeof workflow> => workflow("", tasks);
export const defined = (name: string, definition: Record<string, unknown>): Step => workflowDef(`define ${name}`, { ...definition, name });

export const fork = (branches: unknown[], more: Record<string, unknown> = {}) =>
  operator("FORK_JOIN", "fork", { forkTasks: branches, ...more });
export const join = (joinOn: string[], more: Record<string, unknown> = {}) => operator("JOIN", "join", { joinOn, ...more });
