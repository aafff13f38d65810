// The types that programs of the official JavaScript SDK use by name. The same fields are optional as in the SDK, so that such a program
// type-checks without changes.

import type { JsonSchema } from "../../../../core/schema/json-schema.ts";
import type { ResultStatus, RetryLogic, TaskStatus, TimeoutPolicy } from "../../wire/shapes.ts";

/** A task as a worker function receives it. */
export interface Task {
  taskId?: string;
  workflowInstanceId?: string;
  taskDefName?: string;
  taskType?: string;
  referenceTaskName?: string;
  status?: TaskStatus;
  inputData?: { [key: string]: unknown };
  outputData?: { [key: string]: unknown };
  pollCount?: number;
  retryCount?: number;
  seq?: number;
  iteration?: number;
  domain?: string;
  workerId?: string;
  correlationId?: string;
  workflowType?: string;
  workflowPriority?: number;
  workflowTask?: { type?: string; name?: string; taskReferenceName?: string; [field: string]: unknown };
  taskDefinition?: TaskDef;
  callbackAfterSeconds?: number;
  responseTimeoutSeconds?: number;
  startDelayInSeconds?: number;
  scheduledTime?: number;
  startTime?: number;
  firstStartTime?: number;
  updateTime?: number;
  endTime?: number;
  queueWaitTime?: number;
  retried?: boolean;
  retriedTaskId?: string;
  executed?: boolean;
  loopOverTask?: boolean;
  parentTaskId?: string;
  subWorkflowId?: string;
  reasonForIncompletion?: string;
  externalInputPayloadStoragePath?: string;
  externalOutputPayloadStoragePath?: string;
}

/** One log line of a task. */
export interface TaskExecLog {
  log?: string;
  taskId?: string;
  createdTime?: number;
}

/** The status that a worker may report. */
export type TaskResultStatus = ResultStatus;

/** For programs that write `TaskResultStatusEnum.COMPLETED`. */
export const TaskResultStatusEnum = {
  IN_PROGRESS: "IN_PROGRESS",
  FAILED: "FAILED",
  FAILED_WITH_TERMINAL_ERROR: "FAILED_WITH_TERMINAL_ERROR",
  COMPLETED: "COMPLETED",
} as const;
export type TaskResultStatusEnum = (typeof TaskResultStatusEnum)[keyof typeof TaskResultStatusEnum];

/** The result of a task as a worker function may return it. */
export interface TaskResult {
  taskId: string;
  workflowInstanceId: string;
  workerId?: string;
  status?: TaskResultStatus;
  outputData?: { [key: string]: unknown };
  reasonForIncompletion?: string;
  callbackAfterSeconds?: number;
  logs?: TaskExecLog[];
  externalOutputPayloadStoragePath?: string;
  subWorkflowId?: string;
}

/** What a handler returns to be called again. */
export interface TaskInProgressResult {
  status: "IN_PROGRESS";
  callbackAfterSeconds: number;
  outputData?: Record<string, unknown>;
}

/** Returns whether a worker function requests to be called again later. */
export function isTaskInProgress(result: unknown): result is TaskInProgressResult {
  const { status, callbackAfterSeconds } = (result ?? {}) as Partial<TaskInProgressResult>;
  return status === "IN_PROGRESS" && typeof callbackAfterSeconds === "number";
}

/** The definition of a task, for registration at the server. */
export interface TaskDef {
  name?: string;
  description?: string;
  retryCount?: number;
  retryLogic?: RetryLogic;
  retryDelaySeconds?: number;
  backoffScaleFactor?: number;
  timeoutSeconds?: number;
  timeoutPolicy?: TimeoutPolicy;
  totalTimeoutSeconds?: number;
  responseTimeoutSeconds?: number;
  pollTimeoutSeconds?: number;
  concurrentExecLimit?: number;
  rateLimitPerFrequency?: number;
  rateLimitFrequencyInSeconds?: number;
  inputKeys?: string[];
  outputKeys?: string[];
  enforceSchema?: boolean;
  ownerApp?: string;
  ownerEmail?: string;
}

/**
 * The function of a worker. It returns a wire result without ids, an in-progress result, or any value, which completes the task. It may be
 * asynchronous.
 */
export type WorkerMethod = (task: Task) => unknown;

/** A worker without a decorator. */
export interface ConductorWorker {
  taskDefName: string;
  execute: WorkerMethod;
  domain?: string;
  concurrency?: number;
  pollInterval?: number;
  leaseExtendEnabled?: boolean;
}

/** A worker function with its options, as the registry holds it. */
export interface RegisteredWorker extends Omit<WorkerOptions, "inputType" | "outputType"> {
  executeFunction: WorkerMethod;
  paused?: boolean;
}

/** The options of `worker()`. */
export interface WorkerOptions {
  taskDefName: string;
  /** How many tasks run at once; 1 by default. */
  concurrency?: number;
  /** Milliseconds; 100 by default. */
  pollInterval?: number;
  domain?: string;
  workerId?: string;
  registerTaskDef?: boolean;
  /** Milliseconds that a poll waits at the server. By default 100, and up to 5000 while there is nothing to do. */
  pollTimeout?: number;
  taskDef?: TaskDef;
  overwriteTaskDef?: boolean;
  strictSchema?: boolean;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  /** A class with `@schemaField()`s; takes precedence over `inputSchema`. */
  inputType?: new (
    ...args: never[]
  ) => unknown;
  outputType?: new (...args: never[]) => unknown;
  /** Heartbeats for long tasks; false by default. */
  leaseExtendEnabled?: boolean;
}
