// The shapes on Conductor's wire that a worker and a server share, with their limits. No I/O, no defaults: README.md of this protocol is
// the contract with literal examples. Field names are Conductor's own.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";

/** The longest time that a poll may wait. A server refuses a longer one with status 400. */
export const pollTimeoutMsMax = 5_000;
/** The default wait of a poll. */
export const pollTimeoutMsDefault = 100;
/** Maximum number of tasks that one poll of our worker requests. */
export const pollCountMax = 100;

/** The path of each call, below `{server}/api`. A name in braces is a placeholder for one percent-encoded segment. */
export const paths = {
  poll: "/tasks/poll/batch/{tasktype}",
  update: "/tasks",
  updateV2: "/tasks/update-v2",
  task: "/tasks/{taskId}",
  storage: "/tasks/externalstoragelocation",
  token: "/token",
  schema: "/schema",
  taskDefs: "/metadata/taskdefs",
  taskDef: "/metadata/taskdefs/{tasktype}",
} as const;

/** Carries the token of `POST /api/token`, without the word `Bearer`. */
export const tokenHeader = "x-authorization";

/**
 * Our server sends this header in the response to a poll. It means: when the client disconnects during a poll, the server queues the tasks
 * of the poll again. So a worker that stops may cut its polls. With other servers it must wait for the response: a task that the server has
 * already handed out would be lost until its response timeout.
 */
export const pollReturnsHeader = "longshore-poll-returns";

/** The states that a worker may report. */
export type ResultStatus = "IN_PROGRESS" | "COMPLETED" | "FAILED" | "FAILED_WITH_TERMINAL_ERROR";
export const resultStatuses: readonly ResultStatus[] = ["IN_PROGRESS", "COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR"];

/** The status of a task in the API of Conductor. Some are reported by workers, others are set by the server. */
export type TaskStatus =
  | ResultStatus
  | "SCHEDULED"
  | "CANCELED"
  | "TIMED_OUT"
  | "SKIPPED"
  | "COMPLETED_WITH_ERRORS"
  /** Fields that a newer server may add. */
  | (string & {});

/** A polled task: the fields that a worker needs, and all others that the server sent. */
export interface PolledTask {
  readonly taskId: string;
  readonly workflowInstanceId: string;
  readonly taskDefName: string;
  readonly referenceTaskName: string;
  readonly status: TaskStatus;
  readonly inputData: JsonObject;
  readonly outputData: JsonObject;
  /** 1 for the first poll. Rises each time the task is handed out, for example after an IN_PROGRESS result. */
  readonly pollCount: number;
  readonly retryCount: number;
  /** 0 when there is none. */
  readonly responseTimeoutSeconds: number;
  readonly callbackAfterSeconds: number;
  readonly [field: string]: Json | undefined;
}

/** What `POST /api/tasks` and `POST /api/tasks/update-v2` take. Unknown fields are ignored by servers. */
export interface TaskResult {
  readonly taskId: string;
  readonly workflowInstanceId: string;
  readonly workerId?: string;
  readonly status: ResultStatus;
  readonly reasonForIncompletion?: string;
  readonly callbackAfterSeconds?: number;
  readonly outputData?: JsonObject;
  readonly logs?: readonly TaskExecLog[];
  /** The address of an output that was too large to be sent. */
  readonly externalOutputPayloadStoragePath?: string;
  readonly subWorkflowId?: string;
  /** True together with IN_PROGRESS: the result is a heartbeat, and the server uses only its ids. */
  readonly extendLease?: boolean;
}

/** The text is in `log`; our server also accepts `message`. */
export interface TaskExecLog {
  readonly log: string;
  readonly taskId?: string;
  /** Milliseconds since the epoch. */
  readonly createdTime?: number;
}

/** How the delay between the attempts of a task grows. */
export type RetryLogic = "FIXED" | "LINEAR_BACKOFF" | "EXPONENTIAL_BACKOFF";
export const retryLogics: readonly RetryLogic[] = ["FIXED", "LINEAR_BACKOFF", "EXPONENTIAL_BACKOFF"];
/** What happens to a workflow when one of its tasks times out. */
export type TimeoutPolicy = "RETRY" | "TIME_OUT_WF" | "ALERT_ONLY";
export const timeoutPolicies: readonly TimeoutPolicy[] = ["RETRY", "TIME_OUT_WF", "ALERT_ONLY"];

export interface SchemaRef {
  readonly name: string;
  readonly version: number;
  readonly type?: SchemaType;
}

/** A task definition. Only `name` is required; servers fill in the rest. */
export interface TaskDef {
  readonly name: string;
  readonly description?: string;
  readonly retryCount?: number;
  readonly retryLogic?: RetryLogic;
  readonly retryDelaySeconds?: number;
  readonly backoffScaleFactor?: number;
  readonly timeoutSeconds?: number;
  readonly timeoutPolicy?: TimeoutPolicy;
  readonly totalTimeoutSeconds?: number;
  readonly responseTimeoutSeconds?: number;
  readonly pollTimeoutSeconds?: number;
  readonly concurrentExecLimit?: number;
  readonly rateLimitPerFrequency?: number;
  readonly rateLimitFrequencyInSeconds?: number;
  readonly inputKeys?: readonly string[];
  readonly outputKeys?: readonly string[];
  readonly inputTemplate?: JsonObject;
  readonly inputSchema?: SchemaRef;
  readonly outputSchema?: SchemaRef;
  readonly enforceSchema?: boolean;
  readonly isolationGroupId?: string;
  readonly executionNameSpace?: string;
  readonly ownerApp?: string;
  readonly ownerEmail?: string;
  readonly createTime?: number;
  readonly updateTime?: number;
  readonly createdBy?: string;
  readonly updatedBy?: string;
}

export type SchemaType = "JSON" | "AVRO" | "PROTOBUF";

/** What `POST /api/schema` takes. */
export interface SchemaDef {
  readonly name: string;
  readonly version: number;
  readonly type: SchemaType;
  readonly data?: JsonObject;
}

/** One entry of `GET /api/tasks/queue/polldata`. */
export interface PollData {
  readonly queueName: string;
  readonly domain?: string;
  readonly workerId: string;
  readonly lastPollTime: number;
}

/** The body of every response in which a Conductor server refuses a request. */
export interface ErrorBody {
  readonly status: number;
  readonly message: string;
  readonly instance?: string;
  readonly retryable?: boolean;
  readonly validationErrors?: readonly { readonly path?: string; readonly message: string; readonly invalidValue?: string }[];
  /** On 401 and 403 of servers with tokens: EXPIRED_TOKEN or INVALID_TOKEN. */
  readonly error?: string;
}

/** Returns undefined for an entry without ids, because no report could name it. */
export function parsePolledTask(value: unknown, polledFor: string): PolledTask | undefined {
  if (!isObject(value)) return undefined;
  const taskId = text(value.taskId);
  const workflowInstanceId = text(value.workflowInstanceId);
  if (taskId === undefined || workflowInstanceId === undefined) return undefined;
  const taskDefName = text(value.taskDefName) ?? text(value.taskType) ?? polledFor;
  return {
    ...(value as JsonObject),
    taskId,
    workflowInstanceId,
    taskDefName,
    referenceTaskName: text(value.referenceTaskName) ?? taskDefName,
    status: text(value.status) ?? "IN_PROGRESS",
    inputData: object(value.inputData),
    outputData: object(value.outputData),
    pollCount: whole(value.pollCount, 1),
    retryCount: whole(value.retryCount, 0),
    responseTimeoutSeconds: whole(value.responseTimeoutSeconds, 0),
    callbackAfterSeconds: whole(value.callbackAfterSeconds, 0),
  };
}

/** Whether a received task has the requested type. A task that came without a type has it (`parsePolledTask`). */
export function isOfType(task: PolledTask, type: string): boolean {
  return task.taskDefName === type || task.taskType === type;
}

/** The body of an error, if Conductor sent it and not a proxy. */
export function parseErrorBody(body: string): ErrorBody | undefined {
  if (!body.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    if (!isObject(value) || typeof value.status !== "number" || typeof value.message !== "string") return undefined;
    return value as unknown as ErrorBody;
  } catch {
    // Truncated or not JSON: not the response of a Conductor server.
    return undefined;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function object(value: unknown): JsonObject {
  return isObject(value) ? (value as JsonObject) : {};
}

function whole(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : otherwise;
}
