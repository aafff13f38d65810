// What is written down of a worker, before anybody decides in which form: spans of its executions, and records of its log.

import type { SpanIds } from "../trace.ts";

export type AttributeValue = string | number | boolean;
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface SpanRecord {
  readonly ids: SpanIds;
  /** The caller's span, which is always another process's. */
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: "server" | "consumer";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly error: { readonly name: string; readonly message: string; readonly stack: string | undefined } | undefined;
}

export const levels = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
/** The level of a log record. */
export type Level = (typeof levels)[number];

export interface LogRecord {
  readonly atMs: number;
  readonly level: Level;
  readonly message: string;
  /** The source of the record: the worker, or one of its tasks. */
  readonly logger: string;
  /** Where it belongs: `flow_id`, `run_id`, `step_id`. */
  readonly context: Readonly<Record<string, string>>;
  readonly trace: SpanIds | undefined;
  /** Whatever else is known. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Where records go. Neither may wait nor throw. */
export interface LogSink {
  add(record: LogRecord): void;
  /** Resolves when everything has left, or never will. */
  close(): Promise<void>;
}
