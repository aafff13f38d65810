// The context object of one execution, and replacements for the capabilities that its transport lacks.

import type { Blobs, Context, Deferral, StepPart } from "../core/context.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import { toJson } from "../core/json/to-json.ts";
import type { Execution } from "./execution.ts";
import { Progress } from "./progress.ts";
import { readParts } from "./read-parts.ts";
import type { Call, PartReader } from "./transport.ts";

/** Makes the context of one call. It is an object of closures, so that a handler may destructure it: `({ log, signal })`. */
export function makeContext(
  execution: Execution,
  call: Call,
  round: { readonly deferrals: number; readonly deferred: Json | undefined },
): Context {
  const { assignment, around } = execution;
  let progress: Progress | undefined;
  let emitted = 0;
  const tellProgress = (value: unknown) => {
    const json = toJson(value);
    if (around.events.wants("progress")) around.events.emit("progress", { ...execution.event(), value: json });
    if (assignment.progress === undefined) return execution.addLog(`progress: ${JSON.stringify(json)}`, "stdout");
    progress ??= new Progress(assignment.progress.bind(assignment), (error) => around.failing("progress", error));
    progress.tell(json);
  };
  return {
    task: call.task.name,
    // Created on first use, see Execution.
    get signal() {
      return execution.signal;
    },
    attempt: assignment.attempt,
    ids: assignment.ids,
    // A getter, because some protocols must compute the key.
    get idempotencyKey() {
      return assignment.idempotencyKey;
    },
    trace: execution.trace,
    upstream: call.upstream ?? {},
    deferrals: round.deferrals,
    deferred: round.deferred,
    get blobs() {
      return assignment.blobs ?? noBlobs(around.transport.name);
    },
    // A getter, because few handlers read it, and some protocols must build it.
    get native() {
      return assignment.native;
    },
    amend: (name, value) => assignment.amend?.(name, toJson(value)),
    ask: async (name, value) =>
      assignment.ask === undefined ? refuseAsk(around.transport.name, name) : assignment.ask(name, toJson(value), execution.signal),
    log: (entry, stream = "stdout") => {
      if (around.events.wants("logged")) around.events.emit("logged", { ...execution.event(), entry, stream });
      execution.addLog(lineOf(entry), stream);
    },
    progress: tellProgress,
    // Not an async function: a promise that the handler does not await must not end the process when it rejects.
    emit: (value, options = {}) => {
      const number = ++emitted;
      if (!around.transport.capabilities.streams) return reportNow(() => tellProgress(value));
      // After a deferral the call counter starts again, so the default uid also contains the number of deferrals.
      const { uid = round.deferrals === 0 ? String(number) : `${round.deferrals}.${number}` } = options;
      return execution.emit(uid, value);
    },
    parts: (stepId, options = {}) => {
      const reader = assignment.receive?.(stepId) ?? noParts(around.transport.name);
      return readParts(reader, options.signal === undefined ? [execution.signal] : [execution.signal, options.signal]);
    },
    heartbeat: async () => {
      await execution.hold?.beat();
      if (execution.stopped !== undefined) throw execution.stopped;
    },
    defer: (delay: Duration, output?: unknown): Deferral => ({
      "longshore.deferral": true,
      delayMs: durationMs(delay, "delay of ctx.defer"),
      output,
    }),
  };
}

async function reportNow(tell: () => void): Promise<void> {
  tell();
}

function lineOf(entry: string | { readonly [field: string]: unknown }): string {
  if (typeof entry === "string") return entry;
  try {
    return JSON.stringify(entry) ?? String(entry);
  } catch {
    // Logging must not throw for an entry that JSON refuses (a cycle, a bigint).
    return String(entry);
  }
}

function refuseAsk(transport: string, name: string): never {
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${transport} has no call ${JSON.stringify(name)}.`, {
    detail: { field: name },
  });
}

/** For transports that do not support parts. */
function noParts(transport: string): PartReader {
  const message = `${transport} does not support parts of other steps: let the step wait for their results instead.`;
  return { next: (): Promise<readonly StepPart[]> => Promise.reject(new LongshoreError("LONGSHORE_BAD_CONFIG", message)) };
}

/** For transports that do not support blobs. */
function noBlobs(transport: string): Blobs {
  const refuse = () =>
    Promise.reject(
      new LongshoreError(
        "LONGSHORE_BAD_CONFIG",
        `${transport} does not support blobs: return the data itself, or store it elsewhere and return its address.`,
      ),
    );
  return { put: refuse, get: refuse };
}
