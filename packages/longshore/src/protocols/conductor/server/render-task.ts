// One attempt of a task on Conductor's wire: README.md, "A task". It is written as text: parts that are the same for every task of a step
// are written once.

import { backoffMs } from "../../../core/backoff.ts";
import type { Json } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { PlanNode, RetryPolicy } from "../../../engine/run/plan.ts";
import type { AttemptView } from "../../../engine/run/reader.ts";
import { attemptIdOf } from "../dialect/ids.ts";
import { evaluateLane, isSystemLane } from "../dialect/operators.ts";
import { reasonOf } from "../dialect/reasons.ts";
import { closedStatus, outputOf, statusOf, taskDefNameOf, taskTypeOf } from "../dialect/records.ts";
import type { Settings } from "../dialect/settings.ts";
import type { TaskStatus } from "../wire/shapes.ts";
import type { StepView } from "./view.ts";

/** The holder of a task whose worker sent no name. */
export const nobody = "conductor";

/** The holder of tasks that the server itself works on. */
export const systemHolder = "conductor-system";

/** Values of a task that are not in its row. */
export interface TaskSurroundings {
  readonly step: StepView;
  readonly workflowId: string;
  readonly workflowType: string;
  readonly settings: Settings;
  /** The child run of a SUB_WORKFLOW. */
  readonly childId?: string;
  /** The try before this one. */
  readonly before?: Try | undefined;
  /** Only for tasks that are handed out. */
  readonly runtimeMetadata?: { readonly [name: string]: string };
  readonly now: number;
}

/** A task, or an earlier attempt of it, with the same fields. */
export interface Try {
  readonly taskId: string;
  readonly attempt: number;
  readonly firstAttempt: number;
  readonly status: TaskStatus;
  readonly ordinal: number;
  /** JSON texts. */
  readonly input: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly polls: number;
  readonly scheduledAt: number;
  readonly startedAt: number | null;
  readonly updatedAt: number;
  readonly endedAt: number | null;
  readonly delaySeconds: number;
  readonly callbackSeconds: number;
  readonly holder: string | null;
  readonly domain: string | undefined;
  readonly retried: boolean;
  readonly responseSeconds: number;
}

export function currentTry(task: TaskRow, step: StepView): Try {
  const ended = task.endedAt !== null;
  const callbackMs = task.state === "queued" || step.task.type === "WAIT" ? task.dueAt - task.queuedAt : 0;
  const bySelf = task.lane === null && task.state !== "skipped";
  return {
    taskId: task.id,
    attempt: task.attempt,
    firstAttempt: task.firstAttempt,
    status: statusIn(step, task),
    ordinal: task.ordinal,
    input: task.input,
    output: outputText(step, task),
    error: step.node === undefined ? task.error : reasonOf(step.node, task),
    polls: isEvaluated(step) ? 0 : task.deferrals + (task.claimedAt === null ? 0 : 1),
    scheduledAt: task.attemptAt,
    startedAt: task.startedAt ?? (bySelf ? task.attemptAt : null),
    updatedAt: task.state === "skipped" ? 0 : (task.endedAt ?? changedAt(task)),
    endedAt: task.endedAt,
    delaySeconds: task.deferrals === 0 && task.lane !== null ? delaySeconds(step, task, task.dueAt - task.attemptAt) : 0,
    callbackSeconds: isSignalWait(task, step)
      ? signalWaitSeconds
      : ended && step.task.type !== "WAIT"
        ? 0
        : delaySeconds(step, task, callbackMs),
    holder: task.holder,
    domain: domainOf(task),
    retried: false,
    responseSeconds: step.definition?.responseTimeoutSeconds ?? Math.round((task.holdMs ?? task.termMs) / 1_000),
  };
}

/** The real server evaluates expressions and sends events while it decides, so nothing polls their tasks. */
function isEvaluated({ node, task }: StepView): boolean {
  return node?.kind === "task" && (node.lanes[0]?.name === evaluateLane || task.type === "EVENT");
}

/** Whether the limits of its definition are shown. */
function isLimited({ node, task }: StepView): boolean {
  if (node === undefined || task.type === "DO_WHILE" || task.type === "HTTP") return true;
  return node.kind === "task" && !isSystemLane(node.lanes[0]?.name ?? "");
}

/** The last activity of a task that has not ended. */
function changedAt(task: TaskRow): number {
  return Math.max(
    task.claimedAt ?? 0,
    task.holdUntil === null ? 0 : task.holdUntil - task.termMs,
    task.deferrals > 0 ? task.queuedAt : 0,
    task.lane === null ? task.attemptAt : 0,
  );
}

/** Whole seconds of a delay. The random share of the delay of another try is not shown. */
function delaySeconds(step: StepView, task: Pick<TaskRow, "attempt" | "firstAttempt" | "deferrals" | "policy">, ms: number): number {
  const tries = task.attempt - task.firstAttempt;
  const node = step.node;
  const retry = task.policy === null ? node?.kind === "task" && node.retry : (JSON.parse(task.policy) as RetryPolicy);
  if (tries === 0 || task.deferrals > 0 || !retry || !retry.backoff.jitterMs) return Math.max(0, Math.round(ms / 1_000));
  return Math.max(0, Math.floor(Math.min(ms, backoffMs(retry.backoff, tries, 0)) / 1_000));
}

/** A WAIT that only a report ends shows this many seconds, also when it has ended. */
const signalWaitSeconds = 2_147_483_647;

function isSignalWait(task: TaskRow, step: StepView): boolean {
  if (step.task.type !== "WAIT" || task.lane !== null || task.dueAt !== task.queuedAt) return false;
  return !("duration" in step.task.inputParameters) && !("until" in step.task.inputParameters);
}

export function earlierTry(task: TaskRow, attempt: AttemptView, input: string, step: StepView): Try {
  return {
    ...currentTry(task, step),
    attempt: attempt.attempt,
    status: earlierStatus(attempt),
    ordinal: attempt.ordinal,
    input,
    output: outputText(step, { ...task, attempt: attempt.attempt, output: attempt.output }),
    error: step.node === undefined ? attempt.error : reasonOf(step.node, { ...attempt, id: task.id }),
    polls: isEvaluated(step) ? 0 : attempt.deferrals + (attempt.claimedAt === null ? 0 : 1),
    scheduledAt: attempt.attemptAt,
    startedAt: attempt.startedAt ?? (task.lane === null ? attempt.attemptAt : null),
    updatedAt: attempt.endedAt ?? 0,
    endedAt: attempt.endedAt,
    delaySeconds: task.lane === null ? 0 : delaySeconds(step, { ...task, attempt: attempt.attempt }, attempt.dueAt - attempt.attemptAt),
    callbackSeconds: 0,
    holder: attempt.holder,
    retried: true,
  };
}

export function renderTask(shown: Try, around: TaskSurroundings): string {
  const { step, settings } = around;
  const { before } = around;
  // A task that fails and is tried again shows why. One that is retried by a caller later does not.
  const isRetriedAtOnce = before !== undefined && shown.scheduledAt === before.endedAt;
  const reason = shown.error ?? (isRetriedAtOnce && shown.endedAt === null ? before.error : null);
  const limits = isLimited(step) ? step.definition : unlimited;
  const { type, definitionName } = namesOf(step, shown.input);
  const iteration = iterationOf(step, shown.output);
  return `{"taskType":${quoted(type)},"status":"${shown.status}","inputData":${objectText(shown.input, "input")},"referenceTaskName":${quoted(referenceOf(step))},"retryCount":${shown.attempt - shown.firstAttempt},"seq":${shown.ordinal}${optional("correlationId", settings.correlationId)},"pollCount":${shown.polls},"taskDefName":${quoted(definitionName)},"scheduledTime":${shown.scheduledAt},"startTime":${shown.startedAt ?? 0},"endTime":${shown.endedAt ?? 0},"updateTime":${shown.updatedAt},"startDelayInSeconds":${shown.delaySeconds}${before === undefined ? "" : optional("retriedTaskId", attemptIdOf(before.taskId, before.attempt))},"retried":${shown.retried},"executed":${shown.status.startsWith("COMPLETED")},"callbackFromWorker":true,"responseTimeoutSeconds":${shown.responseSeconds},"workflowInstanceId":${quoted(around.workflowId)},"workflowType":${quoted(around.workflowType)},"taskId":${quoted(attemptIdOf(shown.taskId, shown.attempt))}${optional("reasonForIncompletion", reason)},"callbackAfterSeconds":${shown.callbackSeconds}${optional("workerId", shown.holder === nobody || shown.holder === systemHolder ? null : shown.holder)},"outputData":${objectText(shown.output ?? "{}", "result")},"workflowTask":${step.taskText}${optional("domain", shown.domain)},"rateLimitPerFrequency":${limits?.rateLimitPerFrequency ?? 0},"rateLimitFrequencyInSeconds":${limits?.rateLimitFrequencyInSeconds ?? 1},"workflowPriority":${settings.priority},"iteration":${iteration}${optional("subWorkflowId", around.childId)},"subworkflowChanged":false,"firstStartTime":0,"executionMetadata":{"additionalContext":{},"empty":true,"additionalContextMap":{}}${step.definitionText === undefined ? "" : `,"taskDefinition":${step.definitionText}`},"loopOverTask":${iteration > 0}${around.runtimeMetadata === undefined ? "" : `,"runtimeMetadata":${JSON.stringify(around.runtimeMetadata)}`},"queueWaitTime":${queueWait(shown, around.now)}}`;
}

/** The reference name of a task; in a loop with the number of the iteration. */
export function referenceOf({ node, task }: StepView): string {
  return node?.id ?? task.taskReferenceName;
}

/** The iteration of a task in a loop, or the last one of the loop itself. */
function iterationOf({ within }: StepView, output: string | null): number {
  if (within === undefined) return 0;
  if (within.iteration > 0) return within.iteration;
  const { iteration } = (parseExact(output ?? "{}") ?? {}) as { iteration?: number };
  return iteration ?? 0;
}

/** Tasks without a worker have no limits. */
const unlimited = { rateLimitPerFrequency: 0, rateLimitFrequencyInSeconds: 0 };

/** A step with a child run shows its id as well. */
function outputText(step: StepView, task: TaskRow): string | null {
  return step.node?.kind === "run" ? writeExact(outputOf(step.node, task)) : task.output;
}

/** The values of `taskType` and `taskDefName`. Reads the input only for a DYNAMIC task. */
export function namesOf(step: StepView, input: string): { type: string; definitionName: string } {
  const given = step.task.type === "DYNAMIC" ? (parseExact(input) as Json) : null;
  return { type: taskTypeOf(step.task, given), definitionName: taskDefNameOf(step.task, given) };
}

function queueWait(shown: Try, now: number): number {
  if (shown.startedAt !== null && shown.callbackSeconds === 0) return Math.max(0, shown.startedAt - shown.scheduledAt);
  if (shown.updatedAt > 0 && shown.callbackSeconds > 0) return Math.max(0, now - (shown.updatedAt + shown.callbackSeconds * 1_000));
  return 0;
}

function optional(name: string, value: string | null | undefined): string {
  return value === null || value === undefined ? "" : `,"${name}":${quoted(value)}`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Conductor's inputs and outputs are objects; other values of another dialect are put under `name`. */
export function objectText(json: string, name: string): string {
  if (json.startsWith("{")) return json;
  return json === "null" ? "{}" : `{"${name}":${json}}`;
}

/** How a try ended that was followed by another. */
function earlierStatus(attempt: AttemptView): TaskStatus {
  if (attempt.closedBy === "complete") return "COMPLETED";
  return attempt.closedBy === "cancel" || attempt.fault === null ? "CANCELED" : closedStatus(attempt.fault);
}

function statusIn(step: StepView, task: TaskRow): TaskStatus {
  return statusOf(step.node ?? taskNode, task);
}

/** A task without a run is a worker's task like any other. */
const taskNode = { kind: "task", onFailure: "end" } as PlanNode;

/** `domain:type` is the lane of tasks in a domain. */
function domainOf(task: TaskRow): string | undefined {
  const colon = task.lane?.name.indexOf(":") ?? -1;
  return colon > 0 ? task.lane?.name.slice(0, colon) : undefined;
}
