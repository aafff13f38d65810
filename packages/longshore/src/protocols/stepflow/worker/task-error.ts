// Converts a task's failure into the TaskError that is reported. The code decides about retries (README.md, "Error codes"): TIMEOUT and
// UNREACHABLE are always retried, COMPONENT_FAILED and RESOURCE_UNAVAILABLE when the step asks for it, the others never.

import type { ErrorCode } from "../../../core/errors.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { cutMiddle } from "../../../core/text.ts";
import type { Outcome } from "../../../runner/transport.ts";
import { TaskErrorCode } from "../wire/messages.ts";

export type FailedOutcome = Extract<Outcome, { kind: "failed" }>;

export interface ReportedError {
  readonly code: number;
  readonly message: string;
  readonly data: JsonObject;
}

/** Long enough for people; orchestrators store these with the run. */
const messageCharsMax = 16_384;
const tracebackCharsMax = 16_384;

const codes: { readonly [Code in ErrorCode]?: number } = {
  LONGSHORE_BAD_INPUT: TaskErrorCode.INVALID_INPUT,
  LONGSHORE_NO_HANDLER: TaskErrorCode.COMPONENT_NOT_FOUND,
  LONGSHORE_CANCELLED: TaskErrorCode.CANCELLED,
  LONGSHORE_DEADLINE: TaskErrorCode.TIMEOUT,
  // The step has not failed, and another worker can take the task at once, as after the loss of a worker.
  LONGSHORE_SHUTDOWN: TaskErrorCode.UNREACHABLE,
  LONGSHORE_UNREACHABLE: TaskErrorCode.RESOURCE_UNAVAILABLE,
  LONGSHORE_STORE_UNAVAILABLE: TaskErrorCode.RESOURCE_UNAVAILABLE,
};

const retried = new Set<number>([
  TaskErrorCode.TIMEOUT,
  TaskErrorCode.UNREACHABLE,
  TaskErrorCode.COMPONENT_FAILED,
  TaskErrorCode.RESOURCE_UNAVAILABLE,
]);

export function taskErrorOf(outcome: FailedOutcome): ReportedError {
  const { name, message, stack } = outcome.error;
  return {
    code: taskErrorCode(outcome),
    message: cutMiddle(message, messageCharsMax),
    data: {
      exception_type: name,
      ...(stack === undefined ? {} : { traceback: cutMiddle(stack, tracebackCharsMax) }),
      ...(outcome.output === undefined ? {} : { details: outcome.output }),
    },
  };
}

function taskErrorCode({ error, retryable }: FailedOutcome): number {
  const code = known(error.name, error.code) ?? TaskErrorCode.COMPONENT_FAILED;
  // A failure that its author marks as final must have a code that is never retried.
  return retryable || !retried.has(code) ? code : TaskErrorCode.WORKER_ERROR;
}

function known(name: string, code: ErrorCode | undefined): number | undefined {
  // The error of an `AbortSignal.timeout`: not the handler took too long, but something that it waited for.
  if (name === "TimeoutError") return TaskErrorCode.RESOURCE_UNAVAILABLE;
  return code === undefined ? undefined : codes[code];
}
