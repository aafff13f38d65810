// Destinations of log records besides a collector: standard error and a file, one JSON object per line.

import { createWriteStream, type WriteStream } from "node:fs";
import type { Logger } from "../runner/notices.ts";
import type { LogRecord, LogSink } from "./records.ts";

/** The limit of bytes that wait for a slow disk; further lines are dropped and counted. */
const unwrittenBytesMax = 16 * 1024 * 1024;

/** Keys of the line itself; a handler's own fields with these names are written with an underscore in front. */
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

/** Returns undefined for a value that JSON refuses: a cycle, a bigint. */
function textOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** One field must not make the line fail. */
function plain(value: unknown): unknown {
  return textOf(value) === undefined ? String(value) : value;
}

/** Writes at once, so that the last line of a process that crashes is not lost. */
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

  /** Appends lines to the file. */
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
