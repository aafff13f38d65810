// Reads the attempts of a task for display: the stored ones, and the current one from the row of the task.

import { wholeRow } from "../../core/slices/slices.ts";
import type { TaskRowHead } from "../board/task.ts";
import { firstRow, type ReadDeps } from "../sliced-reads.ts";
import { attemptOrder, currentAttempt } from "../tables/attempt.ts";
import type { ReaderTables } from "../tables/reader-tables.ts";
import type { AttemptView } from "./reader.ts";

type AttemptTables = Pick<ReaderTables, "attempts" | "attemptHeads">;

/** Oldest first. The newest attempts have their texts, up to `charsMax` characters in all. */
export async function attemptsOf(
  deps: Pick<ReadDeps, "read" | "slices">,
  tables: AttemptTables,
  task: TaskRowHead,
  charsMax: number,
): Promise<AttemptView[]> {
  const { slices } = deps;
  const newestFirst = [currentAttempt({ input: "", output: null, ...task })];
  let chars = 0;
  for (let before: AttemptView | undefined; ; ) {
    const below = before === undefined ? undefined : [before.grant, before.attempt];
    const rows = chars < charsMax ? tables.attempts : tables.attemptHeads;
    const attempt = await firstRow<AttemptView>(deps, rows, { by: attemptOrder, equal: [task.id], below, backwards: true });
    if (attempt === undefined) return newestFirst.reverse();
    await slices.turn(wholeRow);
    before = attempt;
    const size = (attempt.input?.length ?? 0) + (attempt.output?.length ?? 0) + (attempt.error?.length ?? 0);
    slices.spent(size);
    chars += size;
    newestFirst.push(attempt);
  }
}

/** The error of the last attempt that had one. */
export async function lastErrorOf(deps: Pick<ReadDeps, "read" | "slices">, tables: AttemptTables, taskId: string): Promise<string | null> {
  await deps.slices.turn(wholeRow);
  const failed = await firstRow(deps, tables.attemptHeads, { by: attemptOrder, equal: [taskId], having: "error", backwards: true });
  return failed?.error ?? null;
}
