// Decides what to report from how a handler ended. Pure: one table of cases, no clock and no I/O.
//
// | the handler          | not stopped            | cancelled            | deadline, shutdown     |
// | returned a value     | done                   | failed, final        | done                   |
// | returned a deferral  | deferred               | failed, final        | deferred               |
// | returned an ending   | as the ending          | failed, final        | as the ending          |
// | threw TerminalError  | failed, final          | failed, final        | failed, final          |
// | threw anything else  | failed, may be retried | failed, final        | failed, may be retried |
//
// A lost lease is not in the table: then nothing is reported.

import { type Ending, isDeferral, isEnding } from "../core/context.ts";
import { codeOf, isTerminal, LongshoreError, TerminalError, toError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import { toJson } from "../core/json/to-json.ts";
import type { Schema } from "../core/schema/schema.ts";
import type { Failure, Outcome } from "./transport.ts";

export type Ended =
  | { readonly kind: "returned"; readonly value: unknown; readonly output?: Schema | undefined }
  | { readonly kind: "threw"; readonly error: unknown };

/** How many errors of a chain of causes are reported. */
const causesMax = 5;

export function outcomeOf(ended: Ended, stopped: LongshoreError | undefined): Outcome {
  if (stopped?.code === "LONGSHORE_CANCELLED") return { kind: "failed", retryable: false, error: failureOf(stopped) };
  if (ended.kind === "returned") return returned(ended.value);
  // After an abort, the error of the handler is usually a consequence of the abort. So the abort reason is reported. Only a TerminalError
  // is the handler's own decision.
  const error = stopped !== undefined && !isTerminal(ended.error) ? stopped : ended.error;
  return { kind: "failed", retryable: !isTerminal(error), error: failureOf(error) };
}

function returned(value: unknown): Outcome {
  try {
    if (isEnding(value)) return ending(value.outcome);
    if (!isDeferral(value)) return { kind: "done", output: toJson(value) };
    const output: Json | undefined = value.output === undefined ? undefined : toJson(value.output);
    return { kind: "deferred", delayMs: value.delayMs, output };
  } catch (error) {
    const message = `The handler's result is not JSON: ${toError(error).message}`;
    const cause = new LongshoreError("LONGSHORE_BAD_OUTPUT", message, { cause: error });
    return { kind: "failed", retryable: false, error: failureOf(new TerminalError(message, { cause })) };
  }
}

function ending(outcome: Ending["outcome"]): Outcome {
  if (outcome.kind === "done") return { kind: "done", output: toJson(outcome.output) };
  const error: Failure = { name: "Error", message: outcome.message, code: undefined, stack: undefined };
  const { retryable, output } = outcome;
  return { kind: "failed", retryable, error, ...(output === undefined ? {} : { output: toJson(output) }) };
}

/** A failure as it is reported: the message with its causes, so that "fetch failed" has its reason too. */
export function failureOf(thrown: unknown): Failure {
  const error = toError(thrown);
  const messages = [error.message === "" ? error.name : error.message];
  let cause = error.cause;
  for (let depth = 0; depth < causesMax && cause instanceof Error; depth++, cause = cause.cause) {
    const { message } = cause;
    // A cause that an outer message quotes already is left out.
    if (message !== "" && !messages.some((known) => known.includes(message))) messages.push(message);
  }
  return { name: error.name, message: messages.join("\ncaused by: "), code: codeOf(error), stack: error.stack };
}
