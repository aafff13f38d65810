// Turns the notices and events of a worker into log records. Lines of handlers get their context automatically: the ids of the run, the
// step and the span.

import type { Events, TaskEvent, WorkerEvents } from "../runner/events.ts";
import type { Logger } from "../runner/notices.ts";
import { type Level, type LogRecord, type LogSink, levels } from "./records.ts";

export interface LogWriter {
  /** Receives the worker's own notices. */
  readonly logger: Logger;
  attach(events: Pick<Events, "watch">): void;
}

export interface LogWriterOptions {
  readonly level: Level;
  readonly nowMs: () => number;
  readonly sinks: readonly LogSink[];
}

const noticeLevels = { info: "INFO", warn: "WARNING", error: "ERROR" } as const;

export function logWriter({ level, nowMs, sinks }: LogWriterOptions): LogWriter {
  const least = levels.indexOf(level);
  const wants = (wanted: Level) => levels.indexOf(wanted) >= least;
  const write = (record: Omit<LogRecord, "atMs">) => {
    if (!wants(record.level)) return;
    const stamped = { atMs: nowMs(), ...record };
    for (const sink of sinks) sink.add(stamped);
  };
  return {
    logger: ({ level: noticed, message }) =>
      write({ level: noticeLevels[noticed], message, logger: "longshore", context: {}, trace: undefined, fields: {} }),
    attach: (events) => {
      events.watch("logged", (event) => write(lineOf(event)));
      events.watch("executionFailed", (event) => write(failureOf(event)));
      if (!wants("DEBUG")) return;
      events.watch("executionStarted", (event) => write({ ...about(event), level: "DEBUG", message: `${event.task} begins` }));
      events.watch("executionCompleted", (event) => {
        const { durationMs, outputBytes, kind } = event;
        const fields = { ...about(event).fields, duration_ms: durationMs, output_bytes: outputBytes };
        write({ ...about(event), level: "DEBUG", message: `${event.task} ended: ${kind}`, fields });
      });
    },
  };
}

function about({ task, ids, attempt, trace, fields }: TaskEvent): Pick<LogRecord, "logger" | "context" | "trace" | "fields"> {
  const context: Record<string, string> = { ...fields };
  if (ids.runId !== "") context.run_id = ids.runId;
  if (ids.stepId !== "") context.step_id = ids.stepId;
  return { logger: `longshore.${task}`, context, trace, fields: { attempt } };
}

/** A handler may set the level and the message; its other fields are added. */
function lineOf(event: WorkerEvents["logged"]): Omit<LogRecord, "atMs"> {
  const { entry, stream } = event;
  const base = about(event);
  const level: Level = stream === "stderr" ? "WARNING" : "INFO";
  if (typeof entry === "string") return { ...base, level, message: entry.replace(/\n$/, "") };
  const { level: own, message, ...rest } = entry;
  return {
    ...base,
    level: levelIn(own) ?? level,
    message: typeof message === "string" ? message : textOf(entry),
    fields: { ...base.fields, ...rest, ...(levelIn(own) === undefined && own !== undefined ? { level: own } : {}) },
  };
}

function levelIn(value: unknown): Level | undefined {
  if (typeof value !== "string") return undefined;
  const name = value.toUpperCase();
  return levels.find((level) => level === (name === "WARN" ? "WARNING" : name));
}

function failureOf(event: WorkerEvents["executionFailed"]): Omit<LogRecord, "atMs"> {
  const { error, retryable, durationMs } = event;
  const base = about(event);
  const stack = error.stack === undefined ? {} : { stack: error.stack };
  return {
    ...base,
    level: retryable ? "WARNING" : "ERROR",
    message: `${event.task} failed: ${error.message}`,
    fields: { ...base.fields, duration_ms: durationMs, error: error.name, retryable, ...stack },
  };
}

function textOf(entry: { readonly [field: string]: unknown }): string {
  try {
    return JSON.stringify(entry);
  } catch {
    // An entry that JSON refuses (a cycle, a bigint) must not make logging throw.
    return String(entry);
  }
}
