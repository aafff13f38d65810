// Why a task or run failed, in Conductor's texts.

import type { TaskRow } from "../../../engine/board/task.ts";
import type { StepFailure } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { childIdOf } from "../../../engine/run/run.ts";
import { attemptIdOf } from "./ids.ts";
import type { SubWorkflowParam, TaskDef, WorkflowDef, WorkflowTask } from "./model.ts";

/** The fields of an attempt that explain why it has no result. */
export type Ended = Pick<TaskRow, "id" | "attempt" | "error" | "fault" | "overdue">;

/** `reasonForIncompletion` of an attempt; null when there is none. */
export function reasonOf(node: PlanNode, task: Ended): string | null {
  const workflowTask = (node.origin as WorkflowTask | null) ?? undefined;
  if (node.kind === "run") return childReason(workflowTask?.subWorkflowParam, task);
  const definition = workflowTask?.taskDefinition;
  // An empty reason of a worker counts as none; only a JOIN has an empty one.
  const error = task.error === "" && node.kind !== "join" ? null : task.error;
  if (definition === undefined || task.fault === null) return error;
  return overdueReason(definition, task) ?? error;
}

/** A child that failed is named by workflow, version and id. */
function childReason(param: SubWorkflowParam | undefined, { id, attempt, error, fault }: Ended): string | null {
  if (error === null || fault === "final") return error;
  const inline = typeof param?.workflowDefinition === "object" ? param.workflowDefinition : undefined;
  const dot = id.lastIndexOf(".");
  const childId = childIdOf(id.slice(0, dot), Number(id.slice(dot + 1)), attempt);
  return `Sub workflow ${inline?.name ?? param?.name}.${inline?.version ?? param?.version}/${childId} failure reason: ${error}`;
}

/** Null when no deadline passed. */
function overdueReason(definition: TaskDef, { id, attempt, overdue }: Ended): string | null {
  if (overdue === null) return null;
  const policy = `Timeout policy configured to ${definition.timeoutPolicy}`;
  if (overdue === "holdUntil") {
    const taskId = attemptIdOf(id, attempt);
    return `responseTimeout: ${definition.responseTimeoutSeconds} exceeded for the taskId: ${taskId} with Task Definition: ${definition.name}`;
  }
  if (overdue === "claimBy" && definition.pollTimeoutSeconds) {
    const seconds = definition.pollTimeoutSeconds;
    return `Task poll timed out after ${seconds} seconds. Poll timeout configured as ${seconds} seconds. ${policy}`;
  }
  const seconds = overdue === "totalBy" ? definition.totalTimeoutSeconds : definition.timeoutSeconds;
  return `Task timed out after ${seconds} seconds. Timeout configured as ${seconds} seconds. ${policy}`;
}

/** The error of a run for a failed step. The errors of permissive steps are joined. */
export function explain(plan: Plan, failure: StepFailure, before: string | null): string {
  const node = plan.nodes[failure.node] as PlanNode;
  const { taskId, attempt, fault, overdue = null, error } = failure;
  // A mistake in the definition itself, found when a task was created from it: Conductor reports it without a prefix.
  if (fault === "unmade") return error ?? "";
  const timedOut = fault === "timed-out" || fault === "lost";
  const status = failure.state === "cancelled" ? "TERMINATED" : timedOut ? "TIMED_OUT" : "FAILED";
  const reason = reasonOf(node, { id: taskId, attempt, error, fault, overdue });
  const text = `Task ${attemptIdOf(taskId, attempt)} failed with status: ${status} and reason: '${reason}'`;
  return before !== null && node.onFailure === "permit" ? `${before}. ${text}` : text;
}

/** The error of a run whose own time has passed. */
export function timeoutReason({ timeoutSeconds, timeoutPolicy }: Pick<WorkflowDef, "timeoutSeconds" | "timeoutPolicy">): string {
  const after = `Workflow timed out after ${timeoutSeconds} seconds.`;
  return `${after} Timeout configured as ${timeoutSeconds} seconds. Timeout policy configured to ${timeoutPolicy}`;
}
