// Closed attempts that were followed by another attempt, as rows. The newest attempt of a task is in the task's own row.

import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, TableSpec } from "../rows.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import { faultText } from "../tables/fault.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { attemptsKeptMax, type Deadline, type Fault, type TaskRow, type Verb } from "./task.ts";

/** How an attempt, or one hold of it, ended. */
export interface Closing {
  now: number;
  by: Verb;
  receipt: string | null;
  /** The reporter, when no worker held the task. */
  holder?: string;
}

export interface Why {
  error: string | null;
  fault: Fault | null;
  overdue: Deadline | null;
}

/** A closed attempt. `task` is the task as it was during the attempt. */
interface Attempt {
  readonly task: TaskRow;
  readonly closing: Closing;
  readonly why: Why;
  /** Set only when the next attempt has a different input. */
  readonly input: string | null;
  readonly output: string | null;
}

const name = "attempt";
const key = ["task_id", "grant_count", "attempt"];

const attemptTable: TableSpec<Attempt> = {
  name,
  key,
  columns: [
    ["task_id", ({ task }) => task.id],
    ["grant_count", ({ task }) => task.grant],
    ["attempt", ({ task }) => task.attempt],
    ["closed_by", ({ closing }) => closing.by],
    ["holder", ({ task }) => task.holder],
    ["error", ({ why }) => why.error],
    ["fault", ({ why }) => faultText(why)],
    ["queued_at", ({ task }) => task.queuedAt],
    ["started_at", ({ task }) => task.startedAt],
    ["ended_at", ({ closing }) => closing.now],
    ["closed_receipt", ({ closing }) => closing.receipt],
    ["input", ({ input }) => input],
    ["output", ({ output }) => output],
    ["ordinal", ({ task }) => task.ordinal],
    ["deferrals", ({ task }) => task.deferrals],
    ["attempt_at", ({ task }) => task.attemptAt],
    ["due_at", ({ task }) => task.dueAt],
    ["claimed_at", ({ task }) => task.claimedAt],
    ["state", ({ task }) => task.state],
  ],
  of: () => {
    throw new Error("Whole attempts are only written here.");
  },
};

/** How an earlier grant was closed. */
type Closed = Pick<Closing, "by" | "receipt">;

const closedTable: TableSpec<Closed> = {
  ...{ name, key },
  columns: [
    ["closed_by", ({ by }) => by],
    ["closed_receipt", ({ receipt }) => receipt],
  ],
  of: (row) => ({ by: row.closed_by as Verb, receipt: row.closed_receipt as string | null }),
};

/** The oldest attempt of a task, which is removed when the task has too many. */
interface Old {
  readonly taskId: string;
  readonly grant: number;
  readonly attempt: number;
  readonly texts: readonly (string | null)[];
}

const oldTable: TableSpec<Old> = {
  ...{ name, key },
  columns: [
    ["task_id", ({ taskId }) => taskId],
    ["grant_count", ({ grant }) => grant],
    ["attempt", ({ attempt }) => attempt],
    ["input", ({ texts }) => texts[0] ?? null],
    ["output", ({ texts }) => texts[1] ?? null],
    ["error", ({ texts }) => texts[2] ?? null],
  ],
  of: (row) => ({
    ...{ taskId: row.task_id as string, grant: row.grant_count as number, attempt: row.attempt as number },
    texts: [row.input, row.output, row.error] as (string | null)[],
  }),
};

export class Attempts {
  readonly #added: Additions<Attempt>;
  readonly #removed: Additions<Old>;
  readonly #room: Room;
  readonly #closed: TableRows<Closed>;
  readonly #old: TableRows<Old>;

  constructor(store: RowStore, commit: GroupCommit, stored: StoredBytes) {
    this.#room = stored.of("attempts");
    this.#closed = store.table(closedTable);
    this.#old = store.table(oldTable);
    const rows = store.table(attemptTable);
    this.#added = new Additions(commit, (attempt) => rows.insert([attempt]));
    this.#removed = new Additions(commit, ({ taskId, grant, attempt }) => rows.remove([taskId, grant, attempt]));
  }

  /** How an earlier grant of a task was closed; null when no row records it. */
  closing(tx: ReadTx, taskId: string, grant: number): Closed | null {
    for (const closed of this.#closed.scan(tx, { by: key, equal: [taskId, grant], backwards: true, limit: 1 })) return closed;
    return null;
  }

  /**
   * `task` is the task as it was during the attempt. `input` is set only when the next attempt has a different one. An attempt that has
   * ended must be recorded: when there is no room, it is kept without its texts.
   */
  add(tx: Tx, task: TaskRow, closing: Closing, why: Why, input: string | null = null): void {
    const bytes = bytesOf([input, task.output, why.error]);
    const fits = bytes <= this.#room.left;
    if (!fits) this.#room.refused++;
    this.#room.add(tx, fits ? bytes : rowBytes);
    const whole = { task, closing, why, input, output: task.output };
    this.#added.add(tx, fits ? whole : { ...whole, why: { ...why, error: null }, input: null, output: null });
    if (task.attempt >= attemptsKeptMax) this.#forgetOldest(tx, task);
  }

  /** Removes the oldest attempt of a task when there are too many. */
  #forgetOldest(tx: Tx, { id, attempt }: TaskRow): void {
    const gone = this.#removed.pending(tx).filter(({ taskId }) => taskId === id);
    for (const old of this.#old.scan(tx, { by: key, equal: [id], limit: gone.length + 1 })) {
      if (old.attempt > attempt - attemptsKeptMax) return;
      if (gone.some(({ grant, attempt }) => grant === old.grant && attempt === old.attempt)) continue;
      this.#room.add(tx, -bytesOf(old.texts));
      return this.#removed.add(tx, old);
    }
  }
}

function bytesOf(texts: readonly (string | null)[]): number {
  return texts.reduce((bytes, text) => bytes + (text === null ? 0 : Buffer.byteLength(text)), rowBytes);
}
