// The reasons why nodes wait for another attempt. They come from earlier attempts, because a record has an error only at its end.

import type { TaskRow } from "../../../engine/board/task.ts";
import type { Reader } from "../../../engine/run/reader.ts";

/** Returns the errors by task. Costs one read for each waiting task, and nothing for other tasks. */
export async function lastErrors(reader: Pick<Reader, "attempts">, tasks: readonly TaskRow[]): Promise<ReadonlyMap<string, string>> {
  const errors = new Map<string, string>();
  for (const { id, state, attempt, firstAttempt } of tasks) {
    if (state !== "queued" || attempt <= firstAttempt) continue;
    const error = (await reader.attempts(id)).findLast((one) => one.error !== null)?.error;
    if (error) errors.set(id, error);
  }
  return errors;
}
