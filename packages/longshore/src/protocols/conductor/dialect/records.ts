// The record of a step, in Conductor's terms.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { childIdOf, type Run, type RunState } from "../../../engine/run/run.ts";
import { attemptIdOf } from "./ids.ts";
import type { WorkflowDef, WorkflowTask } from "./model.ts";
import { choosesByScript, operatorOf, systemLaneOf } from "./operators.ts";
import { quoteText } from "./quoting.ts";
import { reasonOf } from "./reasons.ts";
import { settingsOf } from "./settings.ts";

export type TaskStatus =
  | "SCHEDULED"
  | "IN_PROGRESS"
  | "COMPLETED"
  | "COMPLETED_WITH_ERRORS"
  | "SKIPPED"
  | "FAILED"
  | "TIMED_OUT"
  | "FAILED_WITH_TERMINAL_ERROR"
  | "CANCELED";

export type WorkflowStatus = "RUNNING" | "PAUSED" | "COMPLETED" | "FAILED" | "TIMED_OUT" | "TERMINATED";

export function definitionOf(plan: Plan): WorkflowDef {
  return plan.origin as WorkflowDef;
}

/** False for a record that Conductor would not have: its node is not a task, or the task could not be created. */
export function isShown(node: PlanNode, task: Pick<TaskRow, "fault">): boolean {
  return workflowTaskOf(node) !== undefined && task.fault !== "unmade";
}

/** Undefined for a node without a task of the definition. */
export function workflowTaskOf(node: PlanNode): WorkflowTask | undefined {
  return node.hidden ? undefined : ((node.origin as WorkflowTask | null) ?? undefined);
}

/** The status of a step's newest attempt. An attempt that was followed by another has its own fault: see `closedStatus`. */
export function statusOf(node: PlanNode, task: Pick<TaskRow, "state" | "lane" | "fault" | "error">): TaskStatus {
  switch (task.state) {
    case "queued":
      return task.lane === null ? "IN_PROGRESS" : "SCHEDULED";
    case "offered":
    case "held":
      return "IN_PROGRESS";
    case "done":
      // A JOIN stores in its error which of its tasks failed and were tolerated.
      return node.kind === "join" && task.error !== null ? "COMPLETED_WITH_ERRORS" : "COMPLETED";
    case "skipped":
      return "SKIPPED";
    case "failed":
      // A system task that cannot succeed keeps its status, although the run continues.
      if (node.onFailure === "tolerate" && !(isSystemTask(node) && task.fault === "final")) return "COMPLETED_WITH_ERRORS";
      // A child that could not be started has failed like any other.
      return node.kind === "run" && task.fault === "final" ? "FAILED" : closedStatus(task.fault);
    case "cancelled":
    case "cancelling":
      // The step was cancelled alone, and its run tolerated this. Otherwise it ended together with its run.
      return node.onFailure === "tolerate" && task.fault !== null ? "COMPLETED_WITH_ERRORS" : "CANCELED";
    // The result is not needed any more, so for Conductor the task has ended.
    case "forgotten":
      return "CANCELED";
  }
}

/** Whether the server itself works on the tasks of this node. */
export function isSystemTask(node: PlanNode): boolean {
  const task = workflowTaskOf(node);
  return task !== undefined && (systemLaneOf(task.type) !== undefined || choosesByScript(task));
}

/** How an attempt ended that was followed by another. */
export function closedStatus(fault: TaskRow["fault"]): TaskStatus {
  if (fault === "lost" || fault === "timed-out") return "TIMED_OUT";
  return fault === "final" ? "FAILED_WITH_TERMINAL_ERROR" : "FAILED";
}

const statuses: { readonly [state in RunState]: WorkflowStatus } = {
  running: "RUNNING",
  paused: "PAUSED",
  blocked: "PAUSED",
  succeeded: "COMPLETED",
  failed: "FAILED",
  cancelled: "TERMINATED",
  "timed-out": "TIMED_OUT",
};

export function workflowStatusOf(state: RunState): WorkflowStatus {
  return statuses[state];
}

/** `taskType` of a record: the queue of a worker's task, FORK for both forks, else the operator. */
export function taskTypeOf(task: WorkflowTask, input: Json): string {
  const operator = operatorOf(task.type);
  if (operator === null) return task.type;
  if (operator === "DYNAMIC") return dynamicNameOf(task, input) ?? task.type;
  if (operator === "FORK_JOIN" || operator === "FORK_JOIN_DYNAMIC") return "FORK";
  return operator === "SIMPLE" ? task.name : operator;
}

const namedByType = new Set(["JOIN", "EXCLUSIVE_JOIN", "SWITCH", "DECISION"]);

/** `taskDefName` of a record: the name of its definition. */
export function taskDefNameOf(task: WorkflowTask, input: Json): string {
  const operator = operatorOf(task.type);
  if (operator === "DYNAMIC") return dynamicNameOf(task, input) ?? task.name;
  if (operator === "FORK_JOIN" || operator === "FORK_JOIN_DYNAMIC") return "FORK";
  return namedByType.has(operator ?? "") ? (operator as string) : task.name;
}

/** The task that a DYNAMIC task resolves to, from its input. */
export function dynamicNameOf(task: Pick<WorkflowTask, "dynamicTaskNameParam">, input: Json): string | null {
  const name = isObject(input) ? input[task.dynamicTaskNameParam ?? ""] : null;
  return name === undefined || name === null || name === "" ? null : typeof name === "string" ? name : JSON.stringify(name);
}

/** Counts attempts from 0. It starts again at 0 when the run is restarted from the beginning. */
function retryCountOf(task: Pick<TaskRow, "attempt" | "firstAttempt">): number {
  return task.attempt - task.firstAttempt;
}

/** How often it was handed out. */
function pollCountOf(task: Pick<TaskRow, "deferrals" | "state" | "startedAt" | "lane">): number {
  return task.deferrals + (task.startedAt !== null && task.state !== "queued" && task.lane !== null ? 1 : 0);
}

/** The output of a step. A SUB_WORKFLOW also has the id of the run that it started. */
export function outputOf(node: PlanNode, task: Pick<TaskRow, "output" | "runId" | "node" | "attempt" | "fault">): JsonObject {
  const output = task.output === null ? {} : (parseExact(task.output) as Json);
  const given = isObject(output) ? (output as JsonObject) : output === null ? {} : { result: output };
  if (node.kind !== "run" || task.fault === "final") return given;
  return { subWorkflowId: childIdOf(task.runId ?? "", task.node, task.attempt), ...given };
}

/** The output of a SWITCH or DECISION that has chosen this case. */
export function choiceOutput(isDecision: boolean, chosen: string): JsonObject {
  return isDecision ? { caseOutput: [chosen] } : { evaluationResult: [chosen], selectedCase: chosen };
}

/** The case in such an output. */
export function selectedIn(output: Json): Json {
  const { caseOutput, selectedCase } = isObject(output) ? (output as JsonObject) : {};
  return Array.isArray(caseOutput) ? (caseOutput[0] ?? null) : (selectedCase ?? null);
}

/**
 * The input of a SWITCH or DECISION whose case an expression has chosen. Its record has only what the expression read; the real server also
 * shows the case, and whether it has tasks.
 */
export function chosenInput(task: WorkflowTask, input: JsonObject, output: Json): JsonObject {
  const chosen = selectedIn(output);
  if (typeof chosen !== "string") return task.type === "DECISION" ? {} : input;
  const branch = Object.hasOwn(task.decisionCases ?? {}, chosen) ? task.decisionCases?.[chosen] : undefined;
  const tasks = task.type === "DECISION" && branch?.length === 0 ? task.defaultCase : (branch ?? task.defaultCase);
  const shown: JsonObject = { ...(task.type === "DECISION" ? {} : input), case: quoteText(chosen) };
  return (tasks ?? []).length > 0 ? { ...shown, hasChildren: "true" } : shown;
}

/** A step as expressions read it. */
export function taskEntry(run: Run, node: PlanNode, task: TaskRow): JsonObject {
  const workflowTask = workflowTaskOf(node) as WorkflowTask;
  const input = parseExact(task.input) as Json;
  const begun = task.lane === null && task.startedAt === null ? task.attemptAt : task.startedAt;
  return {
    input: isObject(input) ? (input as JsonObject) : {},
    output: outputOf(node, task),
    taskType: taskTypeOf(workflowTask, input),
    status: statusOf(node, task),
    referenceTaskName: node.id,
    retryCount: retryCountOf(task),
    correlationId: settingsOf(run).correlationId ?? null,
    pollCount: pollCountOf(task),
    taskDefName: taskDefNameOf(workflowTask, input),
    scheduledTime: task.attemptAt,
    startTime: begun ?? 0,
    endTime: isOpen(task.state) ? 0 : (task.endedAt ?? 0),
    workflowInstanceId: run.id,
    taskId: attemptIdOf(task.id, task.attempt),
    reasonForIncompletion: reasonOf(node, task),
    callbackAfterSeconds: 0,
    workerId: task.holder,
    iteration: 0,
  };
}
