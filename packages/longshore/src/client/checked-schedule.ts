// A schedule written in code, in the form in which a server takes it.

import { checkStartInput } from "../core/schema/schema.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";

/** Whether a value that is to be defined is a schedule. */
export function isSchedule(value: Workflow | Schedule): value is Schedule {
  return "rules" in value;
}

/** The workflow value that must be defined first, if it has one. Rejects with LONGSHORE_BAD_INPUT when the input does not fit its schema. */
export async function scheduledWorkflow({ workflow, rules, input }: Schedule): Promise<Workflow | undefined> {
  if (typeof workflow === "string") return undefined;
  const { tickField } = rules as { tickField?: string };
  await checkStartInput(workflow, tickField === undefined ? input : { ...(input as object), [tickField]: new Date(0).toISOString() });
  return workflow;
}

/** The schedule as a server stores it, with its workflow by name. Rejects as `scheduledWorkflow` does. */
export async function storedSchedule(schedule: Schedule): Promise<Schedule & { workflow: string }> {
  const { name, rules, input } = schedule;
  await scheduledWorkflow(schedule);
  return { name, workflow: rules.workflow, rules, input };
}
