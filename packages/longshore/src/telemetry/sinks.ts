// Where log records go besides a collector: standard error and a file, one JSON object a line.

import { createWriteStream, type WriteStream } from "node:fs";
import type { Logger } from "../runner/notices.ts";
import type { LogRecord, LogSink } from "./records.ts";

/** What may wait for a disk that is slow; beyond it lines are lost and counted. */
const unwrittenBytesMax = 16 * 1024 * 1024;

/** Keys that a line has for itself; a handler's own fields of these names are written after an underscore. */
const ownKeys = new Set(["timestamp", "level", "message", "logger", "flow_id", "run_id", "step_id", "trace_id", "span_id"]);

export function lineOf({ atMs, level, message, logger, context, trace, fields }: LogRecord): string {
  const line: Record<string, unknown> = { timestamp: new Date(atMs).toISOString(), level, message, logger, ...context };
  if (trace !== undefined) {
    line.trace_id = trace.traceId;
    line.span_id = trace.spanId;
  }
  for (const [key, value] of Object.entries(fields)) line[ownKeys.has(key) ? `_${key}` : key] = value;
  return `${textOf(line) ?? textOf(Object.fromEntries(Object.entries(line).map(([key, value]) => [key, plain(value)])))}\n`;
}

/** Undefined for what JSON refuses: a cycle, a bigint. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** A line must not be lost for one of its fields. */
function plain(value: unknown): unknown {
  return textOf(value) === undefined ? String(value) : value;
}

/** At once, so that the last line of a process that dies is there. */
export function stderrSink(write: (line: string) => void = (line) => process.stderr.write(line)): LogSink {
  return { add: (record) => write(lineOf(record)), close: async () => {} };
}

export class FileSink implements LogSink {
  readonly #path: string;
  readonly #tell: Logger;
  readonly #file: WriteStream;
  #broken = false;
  #lost = 0;
  #closed: Promise<void> | undefined;

  /** Lines are added to what is there. */
  constructor(path: string, tell: Logger) {
    this.#path = path;
    this.#tell = tell;
    this.#file = createWriteStream(path, { flags: "a" });
    this.#file.on("error", (error) => {
      this.#broken = true;
      tell({ level: "error", message: `The log file ${path} cannot be written, so its lines are lost: ${error.message}` });
    });
  }

  add(record: LogRecord): void {
    if (this.#broken || this.#closed !== undefined || this.#file.writableLength > unwrittenBytesMax) this.#lost++;
    else this.#file.write(lineOf(record));
  }

  close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#lost > 0) this.#tell({ level: "warn", message: `${this.#lost} log lines did not reach ${this.#path}.` });
      if (this.#broken) resolve();
      else this.#file.end(() => resolve());
    });
    return this.#closed;
  }
}
