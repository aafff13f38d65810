// Why an operation was not committed: for its caller, or for the commit, which performs it again.

import { LongshoreError } from "../core/errors.ts";
import type { Unavailable } from "./rows.ts";

export function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The store has been closed.");
}

export function unavailableError({ what, advice, message, cause }: Unavailable): LongshoreError {
  return new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", `${what}: ${message}. ${advice}; service resumes by itself.`, { cause });
}

/**
 * Thrown by an operation that needs something which takes long to make, such as the plan of a large definition. What it has changed is taken
 * back, and it is performed again as soon as that is there; other operations go on meanwhile.
 */
export class Postponed extends Error {
  /** When it rejects, the operation fails with the same error. */
  readonly until: Promise<unknown>;

  constructor(until: Promise<unknown>) {
    super("The operation is performed again when what it needs is there.");
    this.until = until;
    // Where the operation has failed for another reason by then, no one waits for it.
    until.catch(() => {});
  }
}
