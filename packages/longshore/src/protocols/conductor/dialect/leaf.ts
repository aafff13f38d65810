// The nodes of tasks that have no branches.

import { LongshoreError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { laneOf } from "../../../engine/board/lanes.ts";
import type { OnFailure, PlanNode, TaskNode } from "../../../engine/run/plan.ts";
import { compileValue } from "./expression.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";
import { evaluateLane, operatorOf, systemLaneOf } from "./operators.ts";
import { placementOf, retryOf, timeoutsOf } from "./policy.ts";
import type { CompiledSubWorkflow, ConductorTemplate, InputTemplate } from "./template.ts";

/** The fields that all nodes of a task share. */
export interface Common {
  readonly id: string;
  readonly after: readonly number[];
  readonly waitsFor: "done" | "any";
  readonly onFirstPart?: readonly number[];
  readonly demanded?: boolean;
  readonly onFailure: OnFailure;
  readonly origin: WorkflowTask;
}

export const nothing: ConductorTemplate = { kind: "nothing" };

export function impossible(reason: string): ConductorTemplate {
  return { kind: "impossible", reason };
}

export function isForWorkers(operator: ReturnType<typeof operatorOf>): boolean {
  return operator === null || operator === "SIMPLE" || operator === "DYNAMIC";
}

/** A task that has no branches. */
export function leafOf(task: WorkflowTask, common: Common, isData = false): PlanNode {
  const definition = task.taskDefinition ?? null;
  const operator = operatorOf(task.type);
  // Default inputs are only for workers: the author of a task definition must not change the input of the server's own operators.
  const input = inputOf(task, isForWorkers(operator) ? definition : null, isData);
  const fresh = input.parameters.kind === "constant" ? {} : { freshInput: true };
  const waits = { ...common, ...fresh, retry: retryOf(task, definition), timeouts: waitTimeouts(definition) };
  switch (operator) {
    case "DYNAMIC":
      return workerNode(task, { ...common, freshInput: true }, definition, dynamicInput(task, input, definition));
    case "SUB_WORKFLOW":
      return { ...waits, kind: "run", workflow: null, input: childInput(task, input, isData) };
    case "TERMINATE":
      return { ...common, kind: "end", input: { kind: "input", ...input }, ending: template({ kind: "ending", input }), timeouts: {} };
    case "SET_VARIABLE": {
      const variables = template({ kind: "variables", input });
      return { ...common, kind: "instant", input: { kind: "input", ...input }, output: noOutput, variables, timeouts: {} };
    }
    case "INLINE":
    case "LAMBDA":
    case "JSON_JQ_TRANSFORM":
      return systemNode(task, { ...common, ...fresh }, definition, template({ kind: "input", ...input }));
    case "HTTP": {
      const asyncComplete = task.asyncComplete ?? false;
      const call = inputOf({ ...task, inputParameters: { ...task.inputParameters, asyncComplete } }, null, isData);
      return { ...systemNode(task, { ...common, ...fresh }, definition, template({ kind: "input", ...call })), placed: true };
    }
    case "START_WORKFLOW":
      // In a test it may get its result from the test.
      return { ...systemNode(task, { ...common, ...fresh }, definition, template({ kind: "input", ...input })), placed: true };
    case "EVENT": {
      const event = template({ kind: "input", ...eventInput(task, isData) });
      return { ...systemNode(task, { ...common, freshInput: true }, definition, event), placed: true };
    }
    case "NOOP":
      return { ...common, kind: "instant", input: noOutput, output: noOutput, timeouts: {} };
    case "WAIT":
      return { ...waits, kind: "wait", input: { kind: "input", ...input }, until: template({ kind: "until", input }) };
    case "HUMAN":
      return { ...waits, kind: "wait", input: { kind: "input", ...input }, until: noUntil };
    default:
      return workerNode(task, { ...common, ...fresh }, definition, template({ kind: "input", ...input }));
  }
}

/** An empty object: the output of an operator without an output. */
const noOutput: ConductorTemplate = { kind: "input", parameters: { kind: "constant", value: {} }, otherwise: null };
const noUntil: ConductorTemplate = { kind: "input", parameters: { kind: "constant", value: null }, otherwise: null };

/** Lets the compiler check the value against the union. */
function template(made: ConductorTemplate): ConductorTemplate {
  return made;
}

/** A worker's task. The type of a SIMPLE task is its name; a task with a custom type has that type. */
function workerNode(
  task: WorkflowTask,
  common: Common & { freshInput?: boolean },
  definition: TaskDef | null,
  input: ConductorTemplate,
): PlanNode {
  const type = workerTypeOf(task);
  return {
    ...common,
    kind: "task",
    input,
    placed: true,
    timeouts: definition === null ? {} : timeoutsOf(definition),
    ...placementOf(task, definition, [laneOf(type, [])]),
  };
}

/** Work of the server itself. No worker polls it, so the time limit for being polled does not apply, and neither does the lease. */
export function systemNode(
  task: WorkflowTask,
  common: Common & { freshInput?: boolean },
  definition: TaskDef | null,
  input: ConductorTemplate,
  lane: string = systemLaneOf(task.type) ?? evaluateLane,
): TaskNode {
  const { claimMs: _claimMs, ...timeouts } = definition === null ? {} : timeoutsOf(definition);
  const { holdMs: _holdMs, ...placement } = placementOf(task, definition, [laneOf(lane, [])]);
  return { ...common, kind: "task", input, timeouts, ...placement };
}

/** The queue of a worker's task. For a DYNAMIC task it is known only when it is placed. */
export function workerTypeOf(task: WorkflowTask): string {
  return operatorOf(task.type) === null ? task.type : task.name;
}

/** No worker claims a waiting record, so the time limit for being claimed is also the time limit of the wait. */
function waitTimeouts(definition: TaskDef | null): { claimMs?: number; totalMs?: number } {
  if (definition === null) return {};
  const { endMs, totalMs } = timeoutsOf(definition);
  return { ...(endMs === undefined ? {} : { claimMs: endMs }), ...(totalMs === undefined ? {} : { totalMs }) };
}

/** With `isData` the parameters come from the data of a run, and so contain no expressions. */
export function inputOf(task: WorkflowTask, definition: TaskDef | null, isData = false): InputTemplate {
  const otherwise = definition !== null && Object.keys(definition.inputTemplate).length > 0 ? definition.inputTemplate : null;
  const parameters = { ...otherwise, ...task.inputParameters };
  return { parameters: isData ? { kind: "constant", value: parameters } : compileValue(parameters), otherwise };
}

/** The sink of an EVENT is part of its input, and may be an expression. */
function eventInput(task: WorkflowTask, isData: boolean): InputTemplate {
  const own = { sink: task.sink ?? "", asyncComplete: task.asyncComplete ?? false };
  return inputOf({ ...task, inputParameters: { ...task.inputParameters, ...own } }, null, isData);
}

function dynamicInput(task: WorkflowTask, input: InputTemplate, definition: TaskDef | null): ConductorTemplate {
  return { kind: "dynamic", input, task: { dynamicTaskNameParam: task.dynamicTaskNameParam, taskDefinition: definition ?? undefined } };
}

function childInput(task: WorkflowTask, input: InputTemplate, isData: boolean): ConductorTemplate {
  const param = task.subWorkflowParam ?? {};
  const fields = Object.entries(param).map(([field, value]) => {
    // An inline definition is not searched for expressions: they belong to its own run.
    const inline = field === "workflowDefinition" && typeof value !== "string";
    return [field, inline || isData ? { kind: "constant" as const, value: value as unknown as Json } : compileValue(value as Json)];
  });
  return {
    kind: "child",
    input,
    param: Object.fromEntries(fields) as CompiledSubWorkflow,
  };
}

export function bad(message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field: "tasks" } });
}
