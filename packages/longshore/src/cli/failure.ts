// How a command fails: one message for the person who typed it, and an exit code for scripts.

import { CommanderError } from "commander";
import { LongshoreError, toError } from "../core/errors.ts";
import { printable } from "./terminal.ts";

/** The run failed, or a check found a problem. */
export const exitFailed = 1;
/** The command could not do its work. */
const exitUsage = 2;

/** A failure whose message already explains what to do. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  readonly exitCode: number;

  constructor(message: string, exitCode: number = exitUsage, options?: { cause?: unknown }) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Reports an error once and returns the exit code. A stack trace is printed only for unexpected errors. */
export function exitCodeOf(thrown: unknown, write: (line: string) => void): number {
  // A message may quote the response of a server, which must not send control codes to the terminal.
  const tell = (message: string) => write(message.split("\n").map(printable).join("\n"));
  // Commander has already printed its help, its version or its error.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : exitUsage;
  const error = toError(thrown);
  if (error instanceof CommandFailure) {
    if (error.message !== "") tell(`longshore: ${error.message}`);
    return error.exitCode;
  }
  if (error instanceof LongshoreError) {
    tell(`longshore: ${error.message}`);
    return exitUsage;
  }
  tell(`longshore: ${error.stack ?? error.message}`);
  return exitUsage;
}
