// Log records of a worker, before they become a line or a message to a collector.

import type { SpanIds } from "../core/trace.ts";

export type AttributeValue = string | number | boolean;

export const levels = ["DEBUG", "INFO", "WARNING", "ERROR"] as const;
/** The level of a log record. */
export type Level = (typeof levels)[number];

export interface LogRecord {
  readonly atMs: number;
  readonly level: Level;
  readonly message: string;
  /** The source of the record: the worker, or one of its tasks. */
  readonly logger: string;
  /** The ids of the work: `flow_id`, `run_id`, `step_id`. */
  readonly context: Readonly<Record<string, string>>;
  readonly trace: SpanIds | undefined;
  /** All other fields. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A destination of records. `add` must neither wait nor throw. */
export interface LogSink {
  add(record: LogRecord): void;
  /** Resolves when everything has been written, or is lost. */
  close(): Promise<void>;
}
