// The catalogue of workflows: of every language, with how their last runs ended.

import { z } from "zod";
import { planStepShape, runStates, time, value } from "./shapes.ts";

const ms = z.number().int().nullable();

const endShape = z.object({
  id: z.string().describe("The id of the run."),
  state: z.enum(runStates),
  createdAt: time,
  endedAt: time,
  durationMs: z.number().int(),
});

const workflowFields = {
  name: z.string(),
  dialect: z.string().nullable().describe("The language it is written in; null when neither a definition nor a run is stored."),
  definitionId: z
    .string()
    .nullable()
    .describe("The newest version; null for a workflow that its runs bring with them, such as a graph of FlowKit."),
  version: z.number().int().nullable(),
  definedAt: time.nullable(),
  runs: z
    .partialRecord(z.enum(runStates), z.number().int())
    .describe("How many runs are stored, by state; states without runs are left out."),
  lastEnds: z.array(endShape).describe("Its newest runs that have ended, at most 20, newest first."),
  p50Ms: ms.describe("How long half of them took at most."),
  p95Ms: ms.describe("How long 95 of 100 of them took at most."),
};

export const workflowShape = z.object(workflowFields).meta({ id: "Workflow" });

export const problemShape = z
  .object({
    level: z.enum(["error", "warning"]),
    message: z.string(),
    field: z.string(),
    line: z.number().int().nullable(),
    column: z.number().int().nullable(),
  })
  .meta({ id: "DefinitionProblem" });

const unservedShape = z.object({
  step: z.string(),
  lane: z.string(),
  labels: z.array(z.string()),
  text: z.string().describe("Why no live worker could take it."),
  missing: z.array(z.string()).describe("Labels that no live worker of this lane offers."),
});

export const wholeWorkflowShape = z
  .object({
    ...workflowFields,
    events: z.array(z.string()).describe("The names of the events that start it."),
    steps: z.array(planStepShape).describe("Empty when there is no definition."),
    inputSchema: z.record(z.string(), z.unknown()).nullable().describe("The JSON Schema of the input, as far as its author has given it."),
    lastInputs: z.array(z.object({ runId: z.string(), input: value })).describe("Different inputs of its newest runs, at most 5."),
    text: z
      .string()
      .nullable()
      .describe("The source as indented JSON, which the lines of problems refer to; null when it is longer than 200,000 characters."),
    problems: z.array(problemShape).describe("What its checker finds in it."),
    unserved: z.array(unservedShape).describe("Steps that no live worker could take now, at most 100."),
  })
  .meta({ id: "WholeWorkflow" });

export const versionShape = z
  .object({ id: z.string(), version: z.number().int(), dialect: z.string(), createdAt: time })
  .meta({ id: "WorkflowVersion" });

const diffLineShape = z.object({
  op: z.enum(["same", "added", "removed", "skipped"]),
  text: z.string(),
  count: z.number().int().describe("How many lines it stands for: 1, except for `skipped`."),
});

const stepDiffShape = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  moved: z.array(z.string()).describe("Steps that wait for others than before, or are for another lane."),
});

export const diffShape = z
  .object({
    from: versionShape,
    to: versionShape,
    steps: stepDiffShape,
    lines: z
      .array(diffLineShape)
      .nullable()
      .describe("The sources as indented JSON, line by line; null when one is longer than 200,000 characters."),
  })
  .meta({ id: "WorkflowDiff" });

export const checkShape = z
  .object({
    name: z.string().nullable().describe("The name that it would have; null when it cannot be read."),
    dialect: z.string().nullable(),
    isNew: z.boolean().describe("False when the newest version is the same already."),
    problems: z.array(problemShape).describe("With an error, it cannot be defined."),
    steps: stepDiffShape.nullable().describe("Compared with the newest version; null when there is none or nothing could be read."),
    lines: z.array(diffLineShape).nullable(),
  })
  .meta({ id: "WorkflowCheck" });
