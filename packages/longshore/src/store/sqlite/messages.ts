// Messages between runs on SQLite: what a decision about one run means for its parent, its child or its successor. A message is written in
// the transaction of that decision and carried out in one of its own. Whatever it is about may have moved on by then: a message about an
// earlier attempt of a step, or an earlier life of a child, is dropped (run/run.ts).

import { type EndState, type Fault, isOpen, type Task } from "../../board/task.ts";
import { LongshoreError } from "../../errors.ts";
import { backlogOf, isRunOpen, type Message, type Run, type StoredMessage, successorIdOf } from "../../run/run.ts";
import type { NewChild, NewRun } from "../../run/store.ts";
import type { SqliteBoard } from "./board.ts";
import type { GroupCommit } from "./commit.ts";
import type { Decisions, Happening } from "./decisions.ts";
import type { Database } from "./driver.ts";
import { Additions, type Rows } from "./rows.ts";

export interface MessagesOptions {
  db: Database;
  commit: GroupCommit;
  board: SqliteBoard;
  runs: Rows<Run>;
  decisions: Decisions;
  /** Inside an operation: starts a run, unless it is there. Throws LONGSHORE_LIMIT before it has changed anything. */
  start: (run: NewRun) => void;
  /** Inside an operation: what became of a step, for its run. */
  tell: (task: Task, happening: Happening) => void;
  /** There are messages to carry out. */
  left: () => void;
}

/** How a record ends. */
interface Ending {
  state: EndState;
  output: string | null;
  error: string | null;
  fault: Fault | null;
}

export class Messages {
  readonly #options: MessagesOptions;
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #added: Additions<StoredMessage>;
  readonly #done: Additions<number>;
  #newest: number;

  constructor(options: MessagesOptions) {
    const { db, commit } = options;
    this.#options = options;
    this.#sql = prepareStatements(db);
    this.#added = new Additions(commit, ({ id, message }) => this.#sql.insert.run(id, JSON.stringify(message)));
    this.#done = new Additions(commit, (id) => this.#sql.remove.run(id));
    this.#newest = Number(this.#sql.newest.get()?.id ?? 0);
  }

  /** The oldest of those that have not been carried out. */
  stored(): StoredMessage[] {
    return this.#sql.oldest.all().map((row) => ({ id: row.id as number, message: JSON.parse(row.body as string) as Message }));
  }

  /** Inside an operation. A parent waits again as soon as its child lives again: the caller that restarted the child finds both running. */
  leave(message: Message): void {
    if (message.kind === "reopen-task") return this.#reopenParent(message);
    this.#added.add({ id: ++this.#newest, message });
    this.#options.commit.after(this.#options.left);
  }

  /** Inside an operation: carries a message out and forgets it. */
  deliver({ id, message }: StoredMessage, child: NewChild | null): void {
    this.#done.add(id);
    if (message.kind === "start-run") this.#startChild(message, child);
    else if (message.kind === "settle-task") this.#settleTask(message);
    else if (message.kind === "cancel-child") this.#cancelChild(message);
    else if (message.kind === "go-on") this.#goOn(message);
    else this.#reopenParent(message);
  }

  /**
   * Inside an operation: a record has ended, and its child should stop too. One that is still to be started finds that the step has ended;
   * one that has ended itself has nothing to stop.
   */
  abandoned({ id: parentTaskId, runId, node, attempt }: Task): void {
    const run = runId === null ? null : this.#options.runs.get(runId);
    if (run === null || this.#options.decisions.planOf(run).nodes[node]?.kind !== "run") return;
    const child = this.childOf(parentTaskId, attempt);
    if (child !== null && isRunOpen(child.state)) this.leave({ kind: "cancel-child", parentTaskId, attempt, life: child.retries });
  }

  /** Inside an operation: the run that an attempt of a step has started, in this batch or before it. */
  childOf(parentTaskId: string, parentAttempt: number): Run | null {
    const { runs } = this.#options;
    const row = this.#sql.child.get(parentTaskId, parentAttempt);
    if (row !== undefined) return runs.get(row.id as string);
    return runs.pending().find((run) => run.parentTaskId === parentTaskId && run.parentAttempt === parentAttempt) ?? null;
  }

  #startChild({ parentTaskId, attempt, from, runId }: Message & { kind: "start-run" }, child: NewChild | null): void {
    const parent = parentTaskId === null ? null : this.#options.board.tasks.get(parentTaskId);
    if (parentTaskId !== null && (parent?.state !== "queued" || isOther(attempt, parent.attempt))) return;
    const run = { parentTaskId, parentAttempt: attempt ?? parent?.attempt ?? 0 };
    const error = child === null ? "it could not be started" : "failed" in child ? child.failed : this.#refusal({ ...child, ...run });
    if (error === null) return;
    if (parent !== null) this.#settleRecord(parent, { state: "failed", output: null, error, fault: "final" });
    const before = parentTaskId === null ? this.#options.runs.get(from) : null;
    // Unless it lives again.
    if (before !== null && !isRunOpen(before.state) && successorIdOf(before) === runId)
      this.#options.decisions.decide(before, { kind: "unfollowed", error });
  }

  /** Starts a run, unless it is there. Null when there was room for it. */
  #refusal(run: NewRun): string | null {
    try {
      if (this.#options.runs.get(run.id) === null) this.#options.start(run);
      return null;
    } catch (error) {
      if (error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT") return error.message;
      throw error;
    }
  }

  #settleTask(message: Message & { kind: "settle-task" }): void {
    const child = message.from === undefined ? null : this.#options.runs.get(message.from);
    // A child that lives again is waited for: its end in this life is the one that counts. One that was removed has no other.
    if (child !== null && isOther(message.life, child.retries)) return;
    const task = this.#options.board.tasks.get(message.taskId);
    if (task?.state === "queued" && task.lane === null && task.attempt === message.attempt) this.#settleRecord(task, message);
  }

  #cancelChild({ parentTaskId, attempt, life }: Message & { kind: "cancel-child" }): void {
    const { board, runs, decisions } = this.#options;
    const child = this.childOf(parentTaskId, attempt);
    if (child === null || !isRunOpen(child.state) || isOther(life, child.retries)) return;
    const parentId = board.tasks.get(parentTaskId)?.runId ?? null;
    const error = parentId === null ? null : (runs.get(parentId)?.error ?? null);
    decisions.decide(child, { kind: "cancel", parent: { error } });
  }

  /** A run that is paused goes on when it is resumed; of one that has ended, a retry knows what was left. */
  #goOn({ runId }: Message & { kind: "go-on" }): void {
    const { runs, decisions } = this.#options;
    const run = runs.get(runId);
    if (run?.state !== "running") return;
    const [first, ...others] = backlogOf(run);
    if (first?.rest === undefined) return;
    const taken = { ...run, backlog: others.length === 0 ? null : JSON.stringify(others) };
    runs.put(runId, taken);
    decisions.decide(taken, { kind: "go-on", rest: first.rest });
  }

  /** A child is alive again: its parent waits for it again, unless it has gone its way without it. */
  #reopenParent({ taskId, attempt }: Message & { kind: "reopen-task" }): void {
    const { board, runs, decisions } = this.#options;
    const task = board.tasks.get(taskId);
    const run = task?.runId == null ? null : runs.get(task.runId);
    if (task === null || run === null || task.attempt !== attempt) return;
    if (isOpen(task.state) || task.state === "done" || task.state === "forgotten") return;
    if (decisions.planOf(run).nodes[task.node]?.onFailure === "tolerate") return;
    if (run.state === "paused") this.#waitOn(run, task);
    else if (!isRunOpen(run.state)) decisions.decide(run, { kind: "reopen", node: task.node });
  }

  /** The run is paused and has not acted on the end of this step yet: that end is void. */
  #waitOn(run: Run, task: Task): void {
    const backlog = run.backlog === null ? [] : (JSON.parse(run.backlog) as Happening[]);
    const left = backlog.filter((happening) => !("node" in happening) || happening.node !== task.node);
    if (left.length === backlog.length) return;
    this.#options.runs.put(run.id, { ...run, backlog: left.length === 0 ? null : JSON.stringify(left) });
    this.#options.board.reopenRecord(task.id);
  }

  #settleRecord(task: Task, how: Ending): void {
    const { board } = this.#options;
    const { state, error } = how;
    // Its run goes on without it, unlike a step that is cancelled along with its run.
    const fault = state === "cancelled" ? "failed" : how.fault;
    if (state === "failed") {
      const failed = { kind: "failed" as const, error: error ?? "failed", retryable: fault !== "final" };
      board.closeRecord(how.output === null ? task : { ...task, output: how.output }, fault === "timed-out" ? { kind: "lost" } : failed);
      return;
    }
    board.settleRecord(task.id, { ...how, fault: fault ?? undefined });
    const { node } = task;
    this.#options.tell(task, state === "done" ? { kind: "done", node } : { kind: "ended", node, state, error, fault });
  }
}

/** What a message says against what is: true when there is a newer one. */
function isOther(said: number | undefined, is: number): boolean {
  return said !== undefined && said !== is;
}

/** Messages that are read at once: the next follow when these have been carried out. */
const pageMax = 1_000;

function prepareStatements(db: Database) {
  return {
    oldest: db.prepare(`SELECT id, body FROM message ORDER BY id LIMIT ${pageMax}`),
    newest: db.prepare("SELECT max(id) AS id FROM message"),
    insert: db.prepare("INSERT INTO message (id, body) VALUES (?, ?)"),
    remove: db.prepare("DELETE FROM message WHERE id = ?"),
    child: db.prepare("SELECT id FROM run WHERE parent_task_id = ? AND parent_attempt = ?"),
  };
}
