// The failure of a command: one message for a person or one JSON object for a program, and an exit code for scripts.

import { CommanderError } from "commander";
import { type ErrorCode, LongshoreError, toError } from "../core/errors.ts";
import { jsonText } from "./print-json.ts";
import { printable } from "./terminal.ts";

/** The run failed, or a check found a problem. */
export const exitFailed = 1;
/** The command could not do its work. */
const exitUsage = 2;

/** A failure whose message already explains what to do. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly exitCode: number;
  /** For programs. Absent when the exit code is enough. */
  readonly code: ErrorCode | undefined;

  constructor(message: string, exitCode: number = exitUsage, options: { cause?: unknown; code?: ErrorCode } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = exitCode;
    this.code = options.code;
  }
}

/** Whether a command line asks for JSON. Searches the unparsed arguments, because a mistake in them must be reported as JSON too. */
export function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end === -1 ? argv : argv.slice(0, end)).includes("--json");
}

/** Prints a remark on standard error: as a line, or as `{"warning":{"message":...}}` when the command prints JSON. */
export function warn(message: string, json: boolean): void {
  process.stderr.write(`${json ? jsonText({ warning: { message } }) : printable(`longshore: ${message}`)}\n`);
}

/**
 * Reports an error once and returns the exit code. With `json` it is reported as `{"error":{"code":...,"message":...}}`. A stack trace is
 * printed only for unexpected errors.
 */
export function exitCodeOf(thrown: unknown, write: (line: string) => void, json = false): number {
  const { exitCode, code, message, isPrinted = false } = failureOf(thrown);
  if (message === "" || exitCode === 0) return exitCode;
  if (json) write(jsonText({ error: { ...(code === undefined ? {} : { code }), message } }));
  // A message may quote the response of a server. No control codes of this response must reach the terminal.
  else if (!isPrinted) write(`longshore: ${message}`.split("\n").map(printable).join("\n"));
  return exitCode;
}

interface Failure {
  readonly exitCode: number;
  readonly code?: ErrorCode | undefined;
  readonly message: string;
  /** True for what commander has already printed as text: its help, its version or its error. */
  readonly isPrinted?: boolean;
}

function failureOf(thrown: unknown): Failure {
  if (thrown instanceof CommanderError) {
    const message = thrown.message.replace(/^error: /, "");
    return { exitCode: thrown.exitCode === 0 ? 0 : exitUsage, code: "LONGSHORE_BAD_INPUT", message, isPrinted: true };
  }
  const error = toError(thrown);
  if (error instanceof CommandFailure) return error;
  if (error instanceof LongshoreError) return { exitCode: exitUsage, code: error.code, message: error.message };
  return { exitCode: exitUsage, code: "LONGSHORE_INTERNAL", message: error.stack ?? error.message };
}
