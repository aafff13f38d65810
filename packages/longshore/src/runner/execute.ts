// The life of one assignment, as a pipeline: accept, start, perform, settle, report.
//
// A step returns a promise only when it waits. An async function and its `await` cost three promises, and promises were a tenth of what a
// small task costs.

import { pause } from "../core/clock.ts";
import { type Context, type Deferral, isDeferral, isEnding, withContext } from "../core/context.ts";
import { formatDuration } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import { toJson } from "../core/json/to-json.ts";
import { type Schema, validate } from "../core/schema/schema.ts";
import { makeContext } from "./context.ts";
import { Execution, type Surroundings } from "./execution.ts";
import { type Ended, failureOf, outcomeOf } from "./outcome.ts";
import { deliver, type Undelivered } from "./report.ts";
import type { Assignment, Call, Outcome, ReportAnswer } from "./transport.ts";

/** Runs the assignment until its report is settled. Returns the next assignment if the reply to the report contained one. */
export async function execute(execution: Execution): Promise<Assignment | undefined> {
  try {
    // Awaited in any case: all tasks of one reply are accepted before the first handler runs.
    const call = await start(execution);
    const ended = call.kind === "threw" ? call : await perform(execution, call.call);
    const settled = settle(execution, ended);
    const outcome = settled instanceof Promise ? await settled : settled;
    tellExecution(execution, outcome);
    const logSent = execution.closeLog();
    if (logSent !== undefined) await logSent;
    // The lease may have been lost while the log was sent.
    const isWanted = outcome !== undefined && execution.stopped?.code !== "LONGSHORE_LEASE_LOST";
    const answer = isWanted ? await report(execution, outcome) : undefined;
    const arrived = answer !== undefined && (answer.verdict === "ok" || answer.verdict === "again" || answer.verdict === "cancel");
    execution.endReport(arrived);
    // The lines that could not be sent before.
    const logEnded = execution.endLog(answer !== undefined);
    if (logEnded !== undefined) await logEnded;
    tellEnd(execution, outcome, arrived && outcome !== undefined ? outcome.kind : "lost", answer);
    return answer?.next;
  } finally {
    execution.finish();
  }
}

/** Accepts the work: from here on its lease is renewed, it can be stopped, and it must be reported. */
export function accept(assignment: Assignment, around: Surroundings): Execution {
  return new Execution(assignment, around);
}

/** Finds the handler and validates its input. */
function start(execution: Execution): Started | Promise<Started> {
  const { assignment, around } = execution;
  try {
    const found = assignment.resolve(around.config.tasks);
    if (!(found instanceof Promise)) return begin(execution, found);
    return untilStopped(execution, found)
      .then((call) => begin(execution, call))
      .catch(threw);
  } catch (error) {
    return threw(error);
  }
}

type Threw = Extract<Ended, { kind: "threw" }>;
type Started = { readonly kind: "ready"; readonly call: Call } | Threw;

function threw(error: unknown): Threw {
  return { kind: "threw", error };
}

function begin(execution: Execution, call: Call): Started | Promise<Started> {
  const { events } = execution.around;
  execution.taskName = call.task.name;
  if (events.wants("executionStarted")) events.emit("executionStarted", execution.event());
  // When a handler runs in a thread or process, its input and result are validated there: the schema may return values that are not plain
  // data.
  if (call.task.input === undefined || isElsewhere(execution, call)) return { kind: "ready", call };
  const input = validate(call.task.input, call.input, "input");
  const ready = (value: unknown): Started => ({ kind: "ready", call: { ...call, input: value } });
  return input instanceof Promise ? input.then(ready, threw) : ready(input);
}

/** Calls the handler. Calls it again after a deferral that the protocol does not support. */
async function perform(execution: Execution, call: Call): Promise<Ended> {
  const { defers = execution.around.transport.capabilities.defer } = execution.assignment;
  let deferrals = execution.assignment.deferrals ?? 0;
  let deferred = execution.assignment.deferred;
  try {
    for (;;) {
      if (execution.stopped !== undefined) throw execution.stopped;
      const disarm = armDeadline(execution, call);
      const handled = untilStopped(execution, handle(execution, call, deferrals, deferred));
      const value = await (disarm === undefined ? handled : handled.finally(disarm));
      const kept = execution.partsKept();
      if (kept !== undefined) await untilStopped(execution, kept);
      const output = isElsewhere(execution, call) ? undefined : call.task.output;
      if (!isDeferral(value) || defers) return { kind: "returned", value, output };
      await waitHere(execution, value);
      deferrals++;
      deferred = value.output === undefined ? undefined : toJson(value.output);
    }
  } catch (error) {
    execution.threw(error);
    return { kind: "threw", error };
  }
}

/** Decides what to report. Returns undefined when the lease is lost: then nothing may be reported. */
function settle(execution: Execution, ended: Ended): Outcome | undefined | Promise<Outcome> {
  if (execution.stopped?.code === "LONGSHORE_LEASE_LOST") return undefined;
  if (ended.kind === "threw" || ended.output === undefined || isDeferral(ended.value)) return outcomeOf(ended, execution.stopped);
  if (isEnding(ended.value) && ended.value.outcome.kind === "failed") return outcomeOf(ended, execution.stopped);
  return settleValid(execution, ended.output, isEnding(ended.value) ? ended.value.outcome.output : ended.value);
}

async function settleValid(execution: Execution, schema: Schema, value: unknown): Promise<Outcome> {
  try {
    return outcomeOf({ kind: "returned", value: await validate(schema, value, "output") }, execution.stopped);
  } catch (error) {
    return outcomeOf({ kind: "threw", error }, execution.stopped);
  }
}

/** Emits the events about the end of the handler, before the result is sent. */
function tellExecution(execution: Execution, outcome: Outcome | undefined): void {
  const { events, config } = execution.around;
  endSpan(execution, outcome);
  const name = outcome === undefined || outcome.kind === "failed" ? "executionFailed" : "executionCompleted";
  if (!events.wants(name)) return;
  const common = { ...execution.event(), durationMs: config.clock.now() - execution.startedMs };
  if (outcome === undefined) return events.emit("executionFailed", { ...common, error: failureOf(execution.stopped), retryable: true });
  if (outcome.kind === "failed") {
    return events.emit("executionFailed", { ...common, error: outcome.error, retryable: outcome.retryable });
  }
  const outputBytes = outcome.output === undefined ? 0 : Buffer.byteLength(JSON.stringify(outcome.output));
  events.emit("executionCompleted", { ...common, kind: outcome.kind, outputBytes });
}

function endSpan({ span, taskName: task, stopped }: Execution, outcome: Outcome | undefined): void {
  if (span === undefined) return;
  if (outcome === undefined) span.end({ task, error: failureOf(stopped) });
  else if (outcome.kind === "failed") span.end({ task, error: outcome.error });
  else span.end({ task });
}

function tellEnd(execution: Execution, outcome: Outcome | undefined, kind: Outcome["kind"] | "lost", answer?: ReportAnswer): void {
  const { config, events, ended } = execution.around;
  ended(kind);
  if (!events.wants("taskEnded")) return;
  events.emit("taskEnded", {
    ...execution.event(),
    kind,
    durationMs: config.clock.now() - execution.startedMs,
    error: outcome?.kind === "failed" ? outcome.error : undefined,
    verdict: answer?.acknowledged === false ? undefined : answer?.verdict,
  });
}

/**
 * Sends the outcome and emits the events about that. Resolves with undefined when no try succeeded. The slot stays taken: a result counts
 * only when it has arrived.
 */
function report(execution: Execution, outcome: Outcome): Promise<ReportAnswer | undefined> {
  const { assignment, around, hold } = execution;
  const { events, wantNext, giveUp, failing, working, config, transport } = around;
  const { clock, random } = config;
  const startedMs = clock.now();
  const tryFailed = (error: Error, tries: number, durationMs: number) =>
    events.emit("updateTryFailed", { ...execution.event(), error, tries, durationMs });
  const tries = transport.reportTries;
  const options = { clock, startedMs, random, hold, tries, wantNext, giveUp, failing, working, tryFailed };
  execution.beginReport();
  return deliver(assignment, outcome, options).then((delivery) => {
    if (delivery.kind === "undelivered") return tellUndelivered(execution, delivery, clock.now() - startedMs);
    if (events.wants("updateCompleted")) events.emit("updateCompleted", { ...execution.event(), durationMs: clock.now() - startedMs });
    return delivery.answer;
  });
}

async function tellUndelivered(execution: Execution, delivery: Undelivered, durationMs: number): Promise<undefined> {
  const { assignment, around } = execution;
  const { error, tries, outcome: result } = delivery;
  around.events.emit("updateFailed", { ...execution.event(), durationMs, error, tries, result });
  try {
    await assignment.undelivered?.(result, error);
  } catch (thrown) {
    around.failing("keeping a result", thrown);
  }
}

function handle(execution: Execution, call: Call, deferrals: number, deferred: Json | undefined): Promise<unknown> {
  const { span } = execution;
  const enter = () => handleHere(execution, call, deferrals, deferred);
  return span === undefined ? enter() : span.run(enter);
}

function handleHere(execution: Execution, call: Call, deferrals: number, deferred: Json | undefined): Promise<unknown> {
  const context = makeContext(execution, call, { deferrals, deferred });
  const { isolates } = execution.around;
  if (isolates !== undefined && isElsewhere(execution, call)) return isolates.run(call.task.name, call.input, context);
  return withContext(context, () => callHere(execution, call, context));
}

/**
 * Calls the handler, and notices when it blocked the event loop for a long time: everything else in this process had to wait. A handler that
 * throws at once rejects like all others.
 */
function callHere(execution: Execution, call: Call, context: Context): Promise<unknown> {
  const { config, blocked } = execution.around;
  const calledMs = config.clock.now();
  try {
    return Promise.resolve(call.task.handle(call.input, context));
  } catch (error) {
    return Promise.reject(error);
  } finally {
    blocked(call.task.name, config.clock.now() - calledMs);
  }
}

function isElsewhere({ around }: Execution, { task }: Call): boolean {
  return around.isolates?.has(task.name) === true && around.config.tasks.get(task.name) === task;
}

/**
 * Waits for `work`, but only until the grace period after the abort of the signal has passed. Then a handler that ignores the signal is
 * abandoned.
 */
function untilStopped<Value>(execution: Execution, work: Promise<Value>): Promise<Value> {
  const { clock } = execution.around.config;
  return new Promise((resolve, reject) => {
    let disarm = () => {};
    const finish = () => {
      execution.onStop(undefined);
      disarm();
    };
    execution.onStop((reason) => {
      disarm = clock.at(clock.now() + execution.graceMs, () => {
        finish();
        execution.around.events.emit("taskAbandoned", { ...execution.event(), graceMs: execution.graceMs });
        reject(reason);
      });
    });
    work.then(
      (value) => {
        finish();
        resolve(value);
      },
      (error) => {
        finish();
        reject(error);
      },
    );
  });
}

/** The task's timeout limits one call of its handler, the orchestrator's timeout the whole attempt. */
function armDeadline(execution: Execution, call: Call): (() => void) | undefined {
  const { clock } = execution.around.config;
  const ownMs = call.task.timeoutMs === undefined ? Number.POSITIVE_INFINITY : clock.now() + call.task.timeoutMs;
  const theirMs = execution.startedMs + (execution.assignment.timeoutMs ?? Number.POSITIVE_INFINITY);
  const endMs = Math.min(ownMs, theirMs);
  if (endMs === Number.POSITIVE_INFINITY) return undefined;
  const timeoutMs = ownMs < theirMs ? call.task.timeoutMs : execution.assignment.timeoutMs;
  const message = `Task "${call.task.name}" timed out after ${formatDuration(timeoutMs as number)}.`;
  return clock.at(endMs, () => execution.stop(new LongshoreError("LONGSHORE_DEADLINE", message)));
}

/**
 * Waits for a deferral that the protocol does not support. The task keeps its slot, and its lease is renewed. Ends early, as a failure,
 * when the worker drains.
 */
async function waitHere(execution: Execution, deferral: Deferral): Promise<void> {
  const { config, draining } = execution.around;
  await pause(config.clock, deferral.delayMs, AbortSignal.any([execution.signal, draining]));
  if (execution.stopped !== undefined) throw execution.stopped;
  if (draining.aborted) throw new LongshoreError("LONGSHORE_SHUTDOWN", "The worker stops while this task waits to be called again.");
}
