// Why an operation was not committed, for its caller.

import { LongshoreError, toError } from "../core/errors.ts";

export function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The store has been closed.");
}

export function unavailableError(cause: unknown): LongshoreError {
  const why = cause === undefined ? "" : `: ${toError(cause).message}`;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written now${why}. Make room on the disk; service resumes by itself.`,
    { cause },
  );
}
