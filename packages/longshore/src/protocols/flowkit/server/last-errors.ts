// Why nodes wait for another attempt: their records have errors only at the end.

import type { TaskRow } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";

/** By task. Costs a look for each that waits, and nothing for the others. */
export async function lastErrors(reader: Pick<Reader, "attempts">, tasks: readonly TaskRow[]): Promise<ReadonlyMap<string, string>> {
  const errors = new Map<string, string>();
  for (const { id, state, attempt, firstAttempt } of tasks) {
    if (state !== "queued" || attempt <= firstAttempt) continue;
    const error = (await reader.attempts(id)).findLast((one) => one.error !== null)?.error;
    if (error) errors.set(id, error);
  }
  return errors;
}
