// Workflows of a program as definitions that a server stores.

import { workflowFamily } from "../core/workflow-family.ts";
import { dialectOf, type Workflow } from "../workflow-value.ts";

export interface CodeDefinition {
  readonly name: string;
  readonly dialect: string;
  readonly source: string;
}

/** The workflows and those that they run, in the order in which they are to be defined. */
export function codeDefinitions(workflows: readonly Workflow[]): CodeDefinition[] {
  return workflowFamily(workflows).map((workflow) => ({
    name: workflow.name,
    dialect: dialectOf(workflow),
    source: JSON.stringify(workflow.source),
  }));
}
