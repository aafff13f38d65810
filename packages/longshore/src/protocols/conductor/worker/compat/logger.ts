// The SDK's loggers, which are objects with a method for each level.

import type { Logger } from "../../../../runner/notices.ts";

/** The logger interface of the SDK. */
export interface ConductorLogger {
  info(...args: unknown[]): void;
  error(...args: unknown[]): void;
  debug(...args: unknown[]): void;
  warn?(...args: unknown[]): void;
}

const levels = { DEBUG: 10, INFO: 30, WARN: 40, ERROR: 60 } as const;
/** The name of a log level. */
export type ConductorLogLevel = keyof typeof levels;

/** Lines on standard error, from `CONDUCTOR_LOG_LEVEL` on. */
export class DefaultLogger implements ConductorLogger {
  readonly #least: number;
  readonly #tags: readonly object[];

  constructor(config: { level?: ConductorLogLevel; tags?: object[] } = {}) {
    const wanted = config.level ?? (process.env.CONDUCTOR_LOG_LEVEL?.toUpperCase() as ConductorLogLevel | undefined) ?? "INFO";
    this.#least = levels[wanted] ?? levels.INFO;
    this.#tags = config.tags ?? [];
  }

  debug = (...args: unknown[]) => this.#write("DEBUG", args);
  info = (...args: unknown[]) => this.#write("INFO", args);
  warn = (...args: unknown[]) => this.#write("WARN", args);
  error = (...args: unknown[]) => this.#write("ERROR", args);

  #write(level: ConductorLogLevel, args: unknown[]): void {
    if (levels[level] < this.#least) return;
    const texts = [...this.#tags, ...args].map((value) => (typeof value === "string" ? value : textOf(value)));
    process.stderr.write(`${level} ${texts.join(" ")}\n`);
  }
}

function textOf(value: unknown): string {
  if (value instanceof Error) return value.stack ?? value.message;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // A value that JSON cannot represent must not make logging throw.
    return String(value);
  }
}

/** A logger that drops every line. */
export const noopLogger: ConductorLogger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The runner's notices, passed to the SDK's kind of logger. */
export function loggerOf(logger: ConductorLogger): Logger {
  return ({ level, message }) => {
    if (level === "warn" && logger.warn === undefined) logger.info(message);
    else logger[level]?.(message);
  };
}
