// A workflow and the workflows that it runs, which must be defined with it. As values of a program, and as definitions that a server stores.

import { LongshoreError } from "./errors.ts";

export interface Member<Source> {
  readonly name: string;
  readonly source: Source;
  readonly uses?: readonly Member<Source>[];
}

/**
 * The workflows and all that they run. Each is in the list once, after the workflows that it runs. Throws LONGSHORE_BAD_DEFINITION for a
 * workflow that runs itself, and for two different workflows with one name.
 */
export function workflowFamily<Family extends Member<unknown>>(workflows: readonly Family[]): Family[] {
  const known = new Map<string, Family>();
  const path: Family[] = [];
  const add = (workflow: Family) => {
    const { name, uses = [] } = workflow;
    if (path.includes(workflow))
      throw bad(
        `${[...path.slice(path.indexOf(workflow)), workflow].map((one) => one.name).join(" runs ")}: a workflow cannot run itself.`,
      );
    const other = known.get(name);
    if (other !== undefined) {
      if (other === workflow || isSame(other, workflow)) return;
      throw bad(`Two different workflows are called ${name}: give one of them another name.`);
    }
    path.push(workflow);
    for (const child of uses as readonly Family[]) add(child);
    path.pop();
    known.set(name, workflow);
  };
  for (const workflow of workflows) add(workflow);
  return [...known.values()];
}

/** Two files may have imported the same workflow from two copies of a module. */
function isSame(one: Member<unknown>, other: Member<unknown>): boolean {
  return JSON.stringify(one.source) === JSON.stringify(other.source);
}

/** A workflow of a program as a server stores it. */
export interface CodeDefinition {
  readonly name: string;
  readonly dialect: string;
  readonly source: string;
}

/**
 * The workflow and those that it runs, as a worker reports them: without the events that start them. Only an operator may define that an event
 * starts a workflow.
 */
export function reportedDefinitions(workflow: Member<object>): CodeDefinition[] {
  return codeDefinitions([workflow]).map((definition) => {
    const { events: _events, ...source } = JSON.parse(definition.source) as { events?: unknown };
    return { ...definition, source: JSON.stringify(source) };
  });
}

/** The workflows and those that they run, in the order in which they must be defined. */
export function codeDefinitions(workflows: readonly Member<object>[]): CodeDefinition[] {
  return workflowFamily(workflows).map(({ name, source }) => ({
    name,
    dialect: "function" in source ? "function" : "code",
    source: JSON.stringify(source),
  }));
}

function bad(message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: "workflow" } });
}
