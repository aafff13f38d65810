// Errors in rows that are read at the start and that another program has written. Reading them fails before the server uses any of them.

import { LongshoreError } from "../core/errors.ts";

/** Returns the error as one sentence about the rows in `shown`; other errors stay as they are. */
export function unreadable(error: unknown, shown: string): unknown {
  const isOfRows = error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError;
  if (!isOfRows) return error;
  const message = `There are rows in ${shown} that no server has written, and that cannot be read: ${error.message}. Restore the data from a backup.`;
  return new LongshoreError("LONGSHORE_DATA_DAMAGED", message, { cause: error });
}
