// Records of a worker's log, before they get the form of a line or of a message to a collector.

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
  /** Where it belongs: `flow_id`, `run_id`, `step_id`. */
  readonly context: Readonly<Record<string, string>>;
  readonly trace: SpanIds | undefined;
  /** What else is known. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Where records go. Neither may wait nor throw. */
export interface LogSink {
  add(record: LogRecord): void;
  /** Resolves when everything has left, or never will. */
  close(): Promise<void>;
}
