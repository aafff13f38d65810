// The documents of Conductor that a run is made from, after they were read. Every field with a default has a value. The exceptions are
// lists and maps of tasks: empty ones are left out, as on Conductor's wire. Other fields are kept and returned, but have no effect.

import type { JsonObject } from "../../../core/json/json.ts";

export type TimeoutPolicy = "RETRY" | "TIME_OUT_WF" | "ALERT_ONLY";
export type RetryLogic = "FIXED" | "EXPONENTIAL_BACKOFF" | "LINEAR_BACKOFF";

export interface TaskDef {
  readonly name: string;
  readonly retryCount: number;
  readonly timeoutSeconds: number;
  readonly timeoutPolicy: TimeoutPolicy;
  readonly retryLogic: RetryLogic;
  readonly retryDelaySeconds: number;
  readonly responseTimeoutSeconds: number;
  readonly concurrentExecLimit?: number;
  readonly inputTemplate: JsonObject;
  readonly rateLimitPerFrequency: number;
  readonly rateLimitFrequencyInSeconds: number;
  readonly pollTimeoutSeconds?: number;
  readonly backoffScaleFactor: number;
  readonly maxRetryDelaySeconds: number;
  readonly backoffJitterMs: number;
  readonly totalTimeoutSeconds: number;
  /** Names of secrets and environment variables that a worker receives with a poll. */
  readonly runtimeMetadata: readonly string[];
  readonly ownerEmail?: string;
  readonly createTime?: number;
  readonly updateTime?: number;
}

export interface SubWorkflowParam {
  readonly name?: string;
  /** Null or 0 is the latest; a text is an expression. */
  readonly version?: number | string;
  readonly taskToDomain?: { readonly [taskType: string]: string };
  /** A definition, or an expression that leads to one. */
  readonly workflowDefinition?: WorkflowDef | string;
  readonly priority?: number | string;
  readonly idempotencyKey?: string;
  readonly idempotencyStrategy?: string;
}

export interface WorkflowTask {
  readonly name: string;
  readonly taskReferenceName: string;
  /** An operator, or the name of a queue that custom workers poll. */
  readonly type: string;
  readonly inputParameters: JsonObject;
  readonly dynamicTaskNameParam?: string;
  readonly decisionCases?: { readonly [key: string]: readonly WorkflowTask[] };
  readonly defaultCase?: readonly WorkflowTask[];
  readonly caseValueParam?: string;
  readonly caseExpression?: string;
  readonly evaluatorType?: string;
  readonly expression?: string;
  readonly forkTasks?: readonly (readonly WorkflowTask[])[];
  readonly joinOn?: readonly string[];
  /** The tasks of an EXCLUSIVE_JOIN whose output counts when no task of `joinOn` has run. */
  readonly defaultExclusiveJoinTask?: readonly string[];
  readonly startDelay: number;
  readonly subWorkflowParam?: SubWorkflowParam;
  readonly asyncComplete?: boolean;
  /** Where an EVENT sends its event: `conductor` or `conductor:<name>`. */
  readonly sink?: string;
  readonly optional: boolean;
  readonly permissive: boolean;
  /** Our own: the task starts with the first part of the task before it, not with its end. */
  readonly startWhen?: "FIRST_PART";
  readonly taskDefinition?: TaskDef;
  readonly retryCount?: number;
  readonly loopOver?: readonly WorkflowTask[];
  readonly loopCondition?: string;
  /** An expression for the list of a loop over items. */
  readonly items?: string;
  readonly dynamicForkTasksParam?: string;
  readonly dynamicForkTasksInputParamName?: string;
}

export interface WorkflowDef {
  readonly name: string;
  readonly version: number;
  readonly tasks: readonly WorkflowTask[];
  readonly inputParameters: readonly string[];
  readonly outputParameters: JsonObject;
  readonly failureWorkflow?: string;
  readonly failureWorkflowVersion?: number;
  readonly schemaVersion: number;
  readonly restartable: boolean;
  readonly timeoutPolicy: "TIME_OUT_WF" | "ALERT_ONLY";
  readonly timeoutSeconds: number;
  readonly variables: JsonObject;
  readonly inputTemplate: JsonObject;
  readonly ownerEmail?: string;
  readonly createTime?: number;
  readonly updateTime?: number;
}

/** The lists of tasks inside a task, in the order in which they are searched. */
function branchesOf(task: WorkflowTask): (readonly WorkflowTask[])[] {
  if (task.type === "SWITCH" || task.type === "DECISION") return [...Object.values(task.decisionCases ?? {}), task.defaultCase ?? []];
  if (task.type === "FORK_JOIN") return [...(task.forkTasks ?? [])];
  return task.type === "DO_WHILE" ? [task.loopOver ?? []] : [];
}

/** Every task of a definition, each before those inside it. Children of sub-workflows are not among them. */
export function* everyTask(tasks: readonly WorkflowTask[]): Generator<WorkflowTask> {
  for (const task of tasks) {
    yield task;
    for (const branch of branchesOf(task)) yield* everyTask(branch);
  }
}
