// Stores what a program defines: a workflow with those that it runs, or a schedule with its workflow.

import { isSchedule, scheduledWorkflow } from "../client/checked-schedule.ts";
import type { DefinedSchedule } from "../client/schedule.ts";
import { toJson } from "../core/json/to-json.ts";
import { type CodeDefinition, codeDefinitions } from "../core/workflow-family.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { Schedule as StoredSchedule } from "../engine/schedule/schedule.ts";
import type { NewSchedule } from "../engine/schedule/store.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";

/** Does the same as `define()` of a client, and returns the whole definition. */
export interface Define {
  (workflow: Workflow): Promise<Definition>;
  (schedule: Schedule): Promise<DefinedSchedule>;
}

/** Stores the definitions. */
interface Defining {
  define(definition: CodeDefinition): Promise<Definition>;
  put(wanted: NewSchedule): Promise<{ schedule: Pick<StoredSchedule, "name" | "nextAt">; created: boolean }>;
}

export function defining({ define, put }: Defining): Define {
  const one = async (value: Workflow | Schedule): Promise<Definition | DefinedSchedule> => {
    if (!isSchedule(value)) return defineFamily(value, define);
    const { name, rules, input } = value;
    const workflow = await scheduledWorkflow(value);
    if (workflow !== undefined) await defineFamily(workflow, define);
    const { schedule, created } = await put({ name, rules, input: JSON.stringify(toJson(input)) });
    return { name, created, nextAt: schedule.nextAt };
  };
  return one as Define;
}

/** Defines the workflows that a workflow runs, then the workflow itself. */
async function defineFamily(workflow: Workflow, define: Defining["define"]): Promise<Definition> {
  let defined: Definition | undefined;
  for (const definition of codeDefinitions([workflow])) defined = await define(definition);
  return defined as Definition;
}
