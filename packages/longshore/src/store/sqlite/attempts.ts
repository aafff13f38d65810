// Attempts that are over and were followed by another, as rows. The newest attempt of a task is in the task's own row.

import type { Fault, Task, Verb } from "../../board/task.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database } from "./driver.ts";
import { Additions } from "./rows.ts";
import { type Room, rowBytes, type StoredBytes } from "./stored-bytes.ts";

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

interface Attempt {
  readonly task: Task;
  readonly closing: Closing;
  readonly why: Why;
  readonly input: string | null;
  readonly output: string | null;
}

/**
 * Attempts of one task that are kept: the newest. A task that fails at once and has no limit of its own would else grow without end, and so
 * would everything that reads it.
 */
export const attemptsKeptMax = 1_000;

/** What a row counts. */
export const attemptBytes = `${rowBytes} + coalesce(octet_length(input), 0) + coalesce(octet_length(output), 0) + coalesce(octet_length(error), 0)`;

export class Attempts {
  readonly #additions: Additions<Attempt>;
  readonly #room: Room;
  /** How an earlier grant of a task was closed; null when no row tells. */
  readonly closing: (taskId: string, grant: number) => Pick<Closing, "by" | "receipt"> | null;

  constructor(db: Database, commit: GroupCommit, stored: StoredBytes) {
    this.#room = stored.of("attempts");
    const insert = prepareInsert(db);
    const forget = prepareForget(db);
    this.#additions = new Additions(commit, (attempt) => {
      insert(attempt);
      if (attempt.task.attempt >= attemptsKeptMax) this.#room.addNow(-forget(attempt.task));
    });
    const past = db.prepare(
      "SELECT closed_by, closed_receipt FROM attempt WHERE task_id = ? AND grant_count = ? ORDER BY attempt DESC LIMIT 1",
    );
    this.closing = (taskId, grant) => {
      const row = past.get(taskId, grant);
      return row === undefined ? null : { by: row.closed_by as Verb, receipt: row.closed_receipt as string | null };
    };
  }

  /**
   * Inside an operation: `task` as it was while the attempt lasted. `input` only where the next attempt has another. That an attempt is over
   * cannot be refused: when there is no room, it is kept without its texts.
   */
  add(task: Task, closing: Closing, why: Why, input: string | null = null): void {
    const bytes = rowBytes + bytesOf(input) + bytesOf(task.output) + bytesOf(why.error);
    if (bytes <= this.#room.left) {
      this.#room.add(bytes);
      this.#additions.add({ task, closing, why, input, output: task.output });
      return;
    }
    this.#room.refused++;
    this.#room.add(rowBytes);
    this.#additions.add({ task, closing, why: { ...why, error: null }, input: null, output: null });
  }
}

function prepareInsert(db: Database): (attempt: Attempt) => void {
  const insert = db.prepare(
    `INSERT INTO attempt (task_id, grant_count, attempt, closed_by, holder, error, fault, queued_at, started_at, ended_at, closed_receipt,
      input, output, ordinal, deferrals, attempt_at, due_at, claimed_at, state)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ task, closing: { by, now, receipt }, why: { error, fault }, input, output }) => {
    insert.run(
      ...[task.id, task.grant, task.attempt, by, task.holder, error, fault, task.queuedAt, task.startedAt, now, receipt],
      ...[input, output, task.ordinal, task.deferrals, task.attemptAt, task.dueAt, task.claimedAt],
      task.state,
    );
  };
}

/** Removes the oldest attempt of a task, where there are too many. Returns its bytes. */
function prepareForget(db: Database): (task: Task) => number {
  const oldest = db.prepare("SELECT grant_count, attempt FROM attempt WHERE task_id = ? ORDER BY grant_count, attempt LIMIT 1");
  const remove = db.prepare(
    `DELETE FROM attempt WHERE task_id = ? AND grant_count = ? AND attempt = ? AND attempt <= ? RETURNING ${attemptBytes} AS bytes`,
  );
  return ({ id, attempt }) => {
    const row = oldest.get(id);
    if (row === undefined) return 0;
    const removed = remove.get(id, row.grant_count as number, row.attempt as number, attempt - attemptsKeptMax);
    return removed === undefined ? 0 : Number(removed.bytes);
  };
}

function bytesOf(text: string | null): number {
  return text === null ? 0 : Buffer.byteLength(text);
}
