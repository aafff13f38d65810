import { isTerminal, TerminalError } from "../../../../core/errors.ts";

/** Thrown by a handler: the task fails with FAILED_WITH_TERMINAL_ERROR and is not tried again. */
export class NonRetryableException extends TerminalError {
  override readonly name: string = "NonRetryableException";
}

/** Also true for the SDK's own exception of that name, which a shared library of the program may throw. */
export function asThrown(error: unknown): unknown {
  if (isTerminal(error) || !(error instanceof Error) || error.name !== "NonRetryableException") return error;
  const terminal = new NonRetryableException(error.message, { cause: error.cause });
  if (error.stack !== undefined) terminal.stack = error.stack;
  return terminal;
}
