// The record of a step, in Conductor's terms.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { childIdOf, type Run, type RunState } from "../../../engine/run/run.ts";
import { attemptIdOf } from "./ids.ts";
import type { WorkflowDef, WorkflowTask } from "./model.ts";
import { operatorOf } from "./operators.ts";
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

/** False for a record that Conductor would not have: of a node that is not a task, or of a task that could not be created. */
export function isShown(node: PlanNode, task: Pick<TaskRow, "fault">): boolean {
  return workflowTaskOf(node) !== undefined && task.fault !== "unmade";
}

/** Undefined for a node without a task of the definition. */
export function workflowTaskOf(node: PlanNode): WorkflowTask | undefined {
  return (node.origin as WorkflowTask | null) ?? undefined;
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
      if (node.onFailure === "tolerate") return "COMPLETED_WITH_ERRORS";
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
  if (operator === "FORK_JOIN") return "FORK";
  return operator === "SIMPLE" ? task.name : operator;
}

/** `taskDefName` of a record: the name of its definition. */
export function taskDefNameOf(task: WorkflowTask, input: Json): string {
  const operator = operatorOf(task.type);
  if (operator === "DYNAMIC") return dynamicNameOf(task, input) ?? task.name;
  if (operator === "FORK_JOIN") return "FORK";
  return operator === "JOIN" || operator === "SWITCH" ? operator : task.name;
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
