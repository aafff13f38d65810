// The errors of operations that were not committed. Some are for the caller; others make the commit perform the operation again.

import { LongshoreError } from "../core/errors.ts";
import type { Unavailable } from "./rows.ts";

export function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The store has been closed.");
}

/** If the cause is an error of ours, it is returned unchanged: it already has a code and advice. */
export function unavailableError({ what, advice, message, cause }: Unavailable): LongshoreError {
  if (cause instanceof LongshoreError) return cause;
  return new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `${what}: ${message}. ${advice}; service resumes by itself.`, { cause });
}

/**
 * Thrown by an operation that needs a value which takes long to compute, such as a large plan. Its changes are undone, and it is performed
 * again when the value is ready. Other operations continue.
 */
export class Postponed extends Error {
  /** When it rejects, the operation fails with the same error. */
  readonly until: Promise<unknown>;

  constructor(until: Promise<unknown>) {
    super("The operation is performed again when what it needs is there.");
    this.until = until;
    // If the operation has already failed for another reason, no caller handles this rejection.
    until.catch(() => {});
  }
}
