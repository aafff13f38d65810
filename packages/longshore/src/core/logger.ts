// A structured logger: one line per event, as JSON for programs or as readable text, written to a sink that the caller owns. Secrets are
// removed here: every line passes this code, so no caller can forget it.

import type { Clock } from "./clock.ts";

/** The first level logs most. */
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** Returns whether lines of this level are logged. Callers use it before they build costly fields. */
  enabled(level: Exclude<LogLevel, "silent">): boolean;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

export interface LoggerOptions {
  /** Lines below this level are dropped. Default `info`. */
  level?: LogLevel;
  /** `json`: one JSON object per line; `text`: readable text. Default `json`. */
  format?: "json" | "text";
  /** Receives one line, without the line end. */
  write: (line: string) => void;
  clock: Pick<Clock, "now">;
  /** Texts that must never appear in a line: the configured tokens. */
  secrets?: readonly string[];
}

const severity: Readonly<Record<LogLevel, number>> = { debug: 10, info: 20, warn: 30, error: 40, silent: 50 };
const redacted = "[redacted]";
const secretKey = /^(.*[-_.])?(authorization|cookie|set-cookie|password|secret|token|access[-_]?token|api[-_]?key)s?$/i;
const bearer = /\bbearer\s+[^\s"',;]+/gi;
/** Longer lines are cut. */
const lineCharsMax = 16_384;
/** Fields nested deeper are written as a placeholder. This also ends a cycle. */
const depthMax = 6;

export function createLogger(options: LoggerOptions): Logger {
  const least = severity[options.level ?? "info"];
  const render = options.format === "text" ? renderText : renderJson;
  const mask = maskOf(options.secrets ?? []);

  function line(level: Exclude<LogLevel, "silent">, message: string, fields: LogFields): void {
    const text = mask(render(options.clock.now(), level, message, clean(fields, 0) as LogFields));
    options.write(text.length > lineCharsMax ? `${text.slice(0, lineCharsMax)}...` : text);
  }

  function make(base: LogFields): Logger {
    const log = (level: Exclude<LogLevel, "silent">) => (message: string, fields?: LogFields) => {
      if (severity[level] >= least) line(level, message, fields === undefined ? base : { ...base, ...fields });
    };
    return {
      debug: log("debug"),
      info: log("info"),
      warn: log("warn"),
      error: log("error"),
      enabled: (level) => severity[level] >= least,
      child: (fields) => make({ ...base, ...fields }),
    };
  }

  return make({});
}

function renderJson(now: number, level: string, message: string, fields: LogFields): string {
  return JSON.stringify({ time: new Date(now).toISOString(), level, message, ...fields });
}

function renderText(now: number, level: string, message: string, fields: LogFields): string {
  let text = `${new Date(now).toISOString().slice(11, 23)} ${level.padEnd(5)} ${message}`;
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    text += ` ${name}=${typeof value === "string" && /^[^\s"=\p{Cc}]+$/u.test(value) ? value : JSON.stringify(value)}`;
  }
  return oneLine(text);
}

/** A line may quote what a client sent: that text must not start a second line or send control codes to the terminal. */
function oneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ");
}

/** A copy that JSON can carry: errors become name, code, message and stack; fields with the name of a secret become a placeholder. */
function clean(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return value;
  if (depth >= depthMax) return "[deep]";
  if (value instanceof Error) return clean(errorFields(value), depth);
  if (Array.isArray(value)) return value.map((item) => clean(item, depth + 1));
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  const copy: Record<string, unknown> = {};
  for (const [name, item] of Object.entries(value)) copy[name] = secretKey.test(name) ? redacted : clean(item, depth + 1);
  return copy;
}

function errorFields(error: Error): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return { name, message, ...(code === undefined ? {} : { code }), stack, ...(cause === undefined ? {} : { cause }) };
}

function maskOf(secrets: readonly string[]): (text: string) => string {
  return (text) => {
    let masked = text.replace(bearer, `Bearer ${redacted}`);
    for (const secret of secrets) if (masked.includes(secret)) masked = masked.replaceAll(secret, redacted);
    return masked;
  };
}
