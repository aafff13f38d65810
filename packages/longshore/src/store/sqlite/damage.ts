// The errors for a data file that cannot be trusted.

import { LongshoreError } from "../../core/errors.ts";

export function damagedError(found: readonly string[], cause?: unknown): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_DATA_DAMAGED",
    `${found.join(" ")} Restore the folder from a backup. To serve what can still be read instead, start with --accept-damage.`,
    { cause },
  );
}

/** For callers of a running server: the path and the findings are in its log. */
export function damagedWhileServing(cause: unknown): LongshoreError {
  const message = "The data file is damaged and is not written any more: the log of the server reports the damage and what to do.";
  return new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", message, { cause });
}
