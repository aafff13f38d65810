// Attempts that are over and were followed by another, as rows. The newest attempt of a task is in the task's own row.

import type { Fault, Task, Verb } from "../../board/task.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database } from "./driver.ts";
import { Additions } from "./rows.ts";

/** How an attempt, or a hold of it, came to its end. */
export interface Closing {
  now: number;
  by: Verb;
  receipt: string | null;
  /** Who reported, should nobody have held it. */
  holder?: string;
}

export interface Why {
  error: string | null;
  fault: Fault | null;
}

export class Attempts {
  readonly #additions: Additions<{ task: Task; closing: Closing; why: Why; input: string | null }>;
  /** How an earlier grant of a task was closed; null when no row tells. */
  readonly closing: (taskId: string, grant: number) => Pick<Closing, "by" | "receipt"> | null;

  constructor(db: Database, commit: GroupCommit) {
    const insert = db.prepare(
      `INSERT INTO attempt (task_id, grant_count, attempt, closed_by, holder, error, fault, queued_at, started_at, ended_at, closed_receipt,
        input, output, ordinal, deferrals, attempt_at, due_at, claimed_at, state)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#additions = new Additions(commit, ({ task, closing: { by, now, receipt }, why, input }) => {
      const { error, fault } = why;
      insert.run(
        ...[task.id, task.grant, task.attempt, by, task.holder, error, fault, task.queuedAt, task.startedAt, now, receipt],
        ...[input, task.output, task.ordinal, task.deferrals, task.attemptAt, task.dueAt, task.claimedAt],
        task.state,
      );
    });
    const past = db.prepare(
      "SELECT closed_by, closed_receipt FROM attempt WHERE task_id = ? AND grant_count = ? ORDER BY attempt DESC LIMIT 1",
    );
    this.closing = (taskId, grant) => {
      const row = past.get(taskId, grant);
      return row === undefined ? null : { by: row.closed_by as Verb, receipt: row.closed_receipt as string | null };
    };
  }

  /** Inside an operation: `task` as it was while the attempt lasted. `input` only where the next attempt has another. */
  add(task: Task, closing: Closing, why: Why, input: string | null = null): void {
    this.#additions.add({ task, closing, why, input });
  }
}
