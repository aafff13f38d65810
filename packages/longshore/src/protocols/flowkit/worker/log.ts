// The log of a worker about its runs: one object for each event. The names of events are those of the reference implementation, and the
// messages are those of its guide. Nothing is logged without a listener: a function in the options, or FLOWKIT_LOG_STDOUT in the
// environment.

import type { Clock } from "../../../core/clock.ts";
import { type Environment, variable } from "../../../core/environment.ts";
import { flagOf } from "./environment.ts";

export type LogLevel = "debug" | "info" | "warning" | "error";

/** One record of the log of a FlowKit worker. */
export interface WorkerLogEntry {
  /** RFC 3339 with milliseconds. */
  readonly ts: string;
  readonly level: LogLevel;
  readonly logger: string;
  readonly message: string;
  /** The name of the event, such as `worker.adapter.selected`. */
  readonly event: string;
  readonly [field: string]: unknown;
}

/** Receives the log of a FlowKit worker. */
export type LogSink = (entry: WorkerLogEntry) => void;

/** Without a listener, `fields` are not read. */
export type WorkerLog = (level: LogLevel, event: string, fields?: { readonly [field: string]: unknown }) => void;

/** A message is the name of its event without this prefix. One event loses a longer prefix. */
const prefix = "worker.";
const adapterPrefix = "worker.adapter.";
const adapterEvent = "worker.adapter.handler_conflict_ignored";

/** `bound` fields are in every entry. */
export function workerLog(sink: LogSink | undefined, clock: Clock, bound: { readonly [field: string]: unknown }): WorkerLog {
  if (sink === undefined) return () => {};
  return (level, event, fields = {}) => {
    const ts = new Date(clock.now()).toISOString();
    try {
      sink({ ts, level, logger: "flowkit.worker", message: messageOf(event), ...bound, event, ...fields });
    } catch {
      // An error of the listener must not affect the run.
    }
  };
}

function messageOf(event: string): string {
  if (event.startsWith(adapterEvent)) return event.slice(adapterPrefix.length);
  return event.startsWith(prefix) ? event.slice(prefix.length) : event;
}

const levels: readonly LogLevel[] = ["debug", "info", "warning", "error"];

/** Lines of JSON on standard output, if the environment enables them. */
export function logFromEnvironment(env: Environment, write: (text: string) => void): LogSink | undefined {
  if (!flagOf(env, "FLOWKIT_LOG_STDOUT")) return undefined;
  const least = levels.indexOf((variable(env, "FLOWKIT_LOG_LEVEL")?.toLowerCase() ?? "debug") as LogLevel);
  const indent = flagOf(env, "FLOWKIT_LOG_PRETTY") ? 2 : undefined;
  const stack = flagOf(env, "FLOWKIT_LOG_STACK");
  return (entry) => {
    if (levels.indexOf(entry.level) < least) return;
    write(`${JSON.stringify(entry, (_key, value: unknown) => (value instanceof Error ? errorOf(value, stack) : value), indent)}\n`);
  };
}

function errorOf({ name, message, stack }: Error, withStack: boolean): object {
  return { type: name, message, ...(withStack ? { stack } : {}) };
}
