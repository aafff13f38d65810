// Some rows are read when the server starts. An error of a type that reading rows never has by itself then means that they are damaged. The start fails
// before the server uses any of these rows.

import { LongshoreError } from "../core/errors.ts";

/** Returns LONGSHORE_DATA_DAMAGED for such an error, and any other error unchanged. `shown` is the name of the store. */
export function unreadable(error: unknown, shown: string): unknown {
  const isOfRows = error instanceof TypeError || error instanceof SyntaxError || error instanceof RangeError;
  if (!isOfRows) return error;
  const message = `Rows in ${shown} cannot be read: ${error.message}. They are damaged, or another program has changed them. Restore the data from a backup.`;
  return new LongshoreError("LONGSHORE_DATA_DAMAGED", message, { cause: error });
}
