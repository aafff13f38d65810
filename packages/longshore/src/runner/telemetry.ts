// The ports of telemetry: spans of a worker's executions, records of its log. The runner calls them; the implementation formats and sends
// the data. A protocol only supplies the caller's span.

import type { ContextIds } from "../core/context.ts";
import type { SpanIds, SpanWriter } from "../core/trace.ts";
import type { Events } from "./events.ts";
import type { Logger } from "./notices.ts";
import type { Failure } from "./transport.ts";

/** Receives the spans and the log records of a worker. */
export interface Telemetry {
  readonly tracer?: Tracer;
  /** Receives the spans of a server. Present when spans are exported to a collector. */
  readonly spans?: SpanWriter;
  /** Receives the worker's notices, if `work()` has no other logger. */
  readonly logger?: Logger;
  /** Called once, before the worker starts. */
  attach?(events: Pick<Events, "watch">): void;
  /** Sends what is left. Called when the worker has stopped; must have a time limit of its own. */
  close?(): Promise<void>;
}

/** Names of environment variables for options of `telemetry()`. */
export interface TelemetryVariables {
  readonly endpoint?: string;
  readonly service?: string;
  readonly traces?: string;
  readonly logs?: string;
  readonly logLevel?: string;
  readonly logFile?: string;
}

/** None of these may wait or throw: they are called for every task. */
export interface Tracer {
  /** Begins the span of one execution, before the execution starts. */
  begin(work: TracedWork): Span;
}

/** The span of one execution. */
export interface Span {
  readonly ids: SpanIds;
  /** Calls `fn` so that everything that it starts belongs to this span. */
  run<Result>(fn: () => Result): Result;
  end(ended: SpanEnd): void;
}

/** What is known about an execution at its start. */
export interface TracedWork {
  readonly transport: string;
  readonly worker: string | undefined;
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly trace: WorkTrace;
}

/** What is known about an execution at its end. */
export interface SpanEnd {
  /** The name of the task; known only after its handler was found. */
  readonly task: string;
  /** Absent when the handler returned. */
  readonly error?: Failure;
}

/** What a protocol knows about the trace of its work. */
export interface WorkTrace {
  /** The caller's span. */
  readonly parent?: SpanIds;
  /** The name of the span by the protocol's own conventions. Default: `task.execute`. */
  readonly name?: string;
  /** `server`: the caller waits for the result. `consumer` (the default): the work was taken from a queue. */
  readonly kind?: "server" | "consumer";
  /** Further attributes, by the protocol's own conventions. */
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Further fields of every log record about this work, by the protocol's own names. */
  readonly fields?: Readonly<Record<string, string>>;
}
