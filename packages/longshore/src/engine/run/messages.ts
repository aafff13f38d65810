// Messages of runs: what a decision about one run means for its parent, its child or its successor, and what is left for the next decision
// about the run itself. A message is written in the transaction of that decision and carried out in a later one (`leave` has an exception).
// By then its subject may have changed: a message about an earlier attempt of a step, or an earlier life of a child, is dropped
// (run/run.ts).

import { LongshoreError } from "../../core/errors.ts";
import type { LocalBoard } from "../board/local-board.ts";
import { Marks } from "../board/marks.ts";
import { cancelledAlone, type EndState, type Fault, isOpen, type TaskRow } from "../board/task.ts";
import { Additions, eachRow, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, TableSpec } from "../rows.ts";
import type { LocalSignals } from "../signal/local-signals.ts";
import { runIdTable } from "../tables/run.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Decisions, Happening } from "./decisions.ts";
import { isCommand } from "./driven-state.ts";
import { originIdOf } from "./grown-ids.ts";
import {
  backlogOf,
  isRunOpen,
  type Message,
  type Run,
  rootFrom,
  type StartRun,
  type StoredMessage,
  successorIdOf,
  taskIdOf,
} from "./run.ts";
import type { NewChild, NewRun } from "./store.ts";

export interface MessagesDeps {
  store: RowStore;
  commit: GroupCommit;
  board: LocalBoard;
  runs: Rows<Run>;
  decisions: Decisions;
  /** Starts a run if it does not exist. Throws LONGSHORE_LIMIT before it has changed anything. */
  start: (tx: Tx, run: NewRun) => void;
  /** Notifies the run of a step about the step's end. */
  tell: (tx: Tx, task: TaskRow, happening: Happening) => void;
  signals: Pick<LocalSignals, "matchAll">;
  /** Begins runs that wait at a gate. */
  advance: (tx: Tx, gate: string) => void;
  /** Called when there are messages to carry out. */
  left: () => void;
  /** Replaces the limit in tests. */
  sliceTasks?: number;
}

/** How many events of a pause one transaction decides. Each starts or reaches a step or two. */
const happeningsMax = 50;
/** How many records such a transaction may create: some milliseconds, at 60 us each. */
const recordsMax = 100;

/** How a record ends. */
interface Ending {
  state: EndState;
  output: string | null;
  error: string | null;
  fault: Fault | null;
}

export class Messages {
  readonly #options: MessagesDeps;
  readonly #rows: TableRows<StoredMessage>;
  readonly #children: TableRows<Pick<Run, "id">>;
  readonly #added: Additions<StoredMessage>;
  readonly #done: Additions<number>;
  /** Steps that wait for the same child run again. Each has the number of the last life of that run, which has not been retried yet. */
  readonly #resuming = new Marks<{ readonly life: number }>();
  #newest = 0;
  #newestCancel = 0;

  constructor(options: MessagesDeps) {
    const { store, commit } = options;
    this.#options = options;
    this.#rows = store.table(messageTable);
    this.#children = store.table(runIdTable);
    this.#added = new Additions(commit, (message) => this.#rows.insert([message]));
    this.#done = new Additions(commit, (id) => this.#rows.remove([id]));
  }

  /** Continues the numbering of the stored messages, and finds the runs whose tasks are still to be cancelled. */
  async recover(): Promise<void> {
    const { commit, board } = this.#options;
    await eachRow(
      commit,
      this.#rows,
      { by: ["id"] },
      {
        at: ({ id }) => [id],
        take: ({ id, message }) => {
          this.#newest = id;
          if (message.kind === "start-run" && message.parentTaskId !== null && message.life !== undefined)
            this.#resuming.restore(message.parentTaskId, { life: message.life });
          if (message.kind === "start-run" && message.runId !== undefined && message.parentTaskId === null)
            board.unwritten.unfollowed.restore(message.from, { successor: message.runId });
          if (message.kind === "end-tasks") board.unwritten.ended.restore(message.runId, { endedAt: message.endedAt });
          if (message.kind === "forget-tasks")
            board.unwritten.forgotten.restore(message.runId, { at: message.at, attempts: new Map(message.steps) });
        },
      },
    );
  }

  get newestCancel(): number {
    return this.#newestCancel;
  }

  /** The oldest messages behind `after` that have not been carried out. */
  stored(tx: ReadTx, after = 0): StoredMessage[] {
    return [...this.#rows.scan(tx, { by: ["id"], above: [after], limit: pageMax })];
  }

  /**
   * Stores a message. A message that reopens a parent is carried out at once: the caller that restarted the child must find both runs open.
   */
  leave(tx: Tx, message: Message): void {
    if (message.kind === "reopen-task") return this.#reopenParent(tx, message);
    if (message.kind === "start-run" && message.runId !== undefined && message.parentTaskId === null)
      this.#options.board.unwritten.unfollowed.add(tx, message.from, { successor: message.runId });
    this.#added.add(tx, { id: ++this.#newest, message: this.#withLife(tx, message) });
    if (message.kind === "cancel-child") this.#newestCancel = this.#newest;
    tx.after(this.#options.left);
  }

  /** Adds the number of the child run's last life. The step waits for the next life, so the end of this one does not count for it. */
  #withLife(tx: Tx, message: Message): Message {
    if (message.kind !== "start-run" || message.resumes === undefined || message.resumes !== message.attempt) return message;
    const { parentTaskId, attempt } = message;
    const life = message.life ?? (parentTaskId === null ? undefined : this.childOf(tx, parentTaskId, attempt)?.retries);
    if (life === undefined || parentTaskId === null) return message;
    this.#resuming.add(tx, parentTaskId, { life });
    return { ...message, life };
  }

  /** Carries out a message and removes it. */
  deliver(tx: Tx, { id, message }: StoredMessage, child: NewChild | null): void {
    this.#done.add(tx, id);
    if (message.kind === "start-run") this.#startChild(tx, message, child);
    else if (message.kind === "settle-task") this.#settleTask(tx, message);
    else if (message.kind === "cancel-child") this.#cancelChild(tx, message);
    else if (message.kind === "go-on") this.#goOn(tx, message.runId);
    else if (message.kind === "take-turns") this.#options.advance(tx, message.gate);
    else if (message.kind === "take-signals") this.#options.signals.matchAll(tx, message.runId);
    else if (message.kind === "end-tasks") this.#options.decisions.openTasks.goOn(tx, message);
    else if (message.kind === "forget-tasks") this.#options.decisions.openTasks.forgetMore(tx, message);
    else this.#reopenParent(tx, message);
  }

  /**
   * A record has ended, and its child run should stop too. A child run that starts later finds that the step has ended; one that has
   * already ended needs no stop.
   */
  abandoned(tx: Tx, task: TaskRow): void {
    const { id: parentTaskId, runId, node, attempt } = task;
    const run = runId === null ? null : this.#options.runs.get(tx, runId);
    if (run === null) return;
    const { nodes, driven } = this.#options.decisions.planOf(tx, run);
    if (driven ? !isCommand(task, "run") : nodes[node]?.kind !== "run") return;
    const child = this.childOf(tx, parentTaskId, attempt);
    if (child !== null && isRunOpen(child.state)) this.leave(tx, { kind: "cancel-child", parentTaskId, attempt, life: child.retries });
  }

  /** The run that an attempt of a step has started, in this batch or before it. */
  childOf(tx: Tx, parentTaskId: string, parentAttempt: number): Run | null {
    const { runs } = this.#options;
    const children = this.#children.scan(tx, { by: ["parent_task_id", "parent_attempt"], equal: [parentTaskId, parentAttempt] });
    const isIts = (run: Run) => run.parentTaskId === parentTaskId && run.parentAttempt === parentAttempt;
    // A child that this batch has resumed belongs to a later attempt now.
    for (const { id } of children) {
      const child = runs.get(tx, id);
      if (child !== null && isIts(child)) return child;
    }
    return runs.pending(tx).find(isIts) ?? null;
  }

  #startChild(tx: Tx, message: StartRun, child: NewChild | null): void {
    const { parentTaskId, attempt, from, runId, resumes, life } = message;
    if (parentTaskId !== null && life !== undefined) this.#resuming.remove(tx, parentTaskId);
    const { unfollowed } = this.#options.board.unwritten;
    if (runId !== undefined && unfollowed.get(from)?.successor === runId) unfollowed.remove(tx, from);
    const parent = parentTaskId === null ? null : this.#options.board.tasks.get(tx, parentTaskId);
    if (parentTaskId !== null && (parent?.state !== "queued" || isOther(attempt, parent.attempt))) return;
    const failed = parentTaskId === null ? this.#options.runs.get(tx, from) : null;
    const root = failed === null ? {} : { rootId: rootFrom(failed) };
    const run = { parentTaskId, parentAttempt: attempt ?? parent?.attempt ?? 0, ...root };
    const last = parentTaskId === null || resumes === undefined ? null : this.childOf(tx, parentTaskId, resumes);
    if (parent !== null && last !== null && (resumes === attempt || isSame(last, child))) return this.#resume(tx, parent, last, message);
    const error = child === null ? "it could not be started" : "failed" in child ? child.failed : this.#refusal(tx, { ...child, ...run });
    if (error === null) return;
    if (parent !== null) this.#settleRecord(tx, parent, { state: "failed", output: null, error, fault: "final" });
    // Only when the failed run has not been retried.
    if (failed !== null && !isRunOpen(failed.state) && successorIdOf(failed) === runId)
      this.#options.decisions.decide(tx, failed, { kind: "unfollowed", error });
  }

  /** From now on, the child run of an earlier attempt belongs to the current attempt, and it is retried. */
  #resume(tx: Tx, parent: TaskRow, last: Run, message: StartRun): void {
    const { runs, decisions, board } = this.#options;
    // The child run was retried by itself: its step learns how this ends.
    if (isOther(message.life, last.retries)) return;
    // A retry waits until messages have carried out the last end of the child. They come after this message, so it is queued again, after
    // them.
    if (!isRunOpen(last.state) && board.unwritten.written(last.id) !== undefined) return this.leave(tx, message);
    const resumed: Run = { ...last, parentAttempt: parent.attempt };
    runs.put(tx, last.id, resumed, true);
    // The child run may have succeeded too late for its parent, or after it was retried itself.
    if (last.state === "succeeded") this.#settleRecord(tx, parent, { state: "done", output: last.output, error: null, fault: null });
    else if (!isRunOpen(last.state)) decisions.decide(tx, resumed, { kind: "retry" });
  }

  /** Starts a run if it does not exist. Returns null, or why it was refused. */
  #refusal(tx: Tx, run: NewRun): string | null {
    try {
      if (this.#options.runs.get(tx, run.id) === null) this.#options.start(tx, run);
      return null;
    } catch (error) {
      if (error instanceof LongshoreError && (error.code === "LONGSHORE_LIMIT" || error.code === "LONGSHORE_BAD_INPUT"))
        return error.message;
      throw error;
    }
  }

  #settleTask(tx: Tx, message: Message & { kind: "settle-task" }): void {
    const child = message.from === undefined ? null : this.#options.runs.get(tx, message.from);
    // When the child run has begun a new life, only the end of that life counts. A child run that was removed has no other life.
    if (child !== null && isOther(message.life, child.retries)) return;
    if (message.life !== undefined && message.life === this.#resuming.get(message.taskId)?.life) return;
    const task = this.#options.board.tasks.get(tx, message.taskId);
    if (task?.state === "queued" && task.lane === null && task.attempt === message.attempt) this.#settleRecord(tx, task, message);
  }

  #cancelChild(tx: Tx, { parentTaskId, attempt, life }: Message & { kind: "cancel-child" }): void {
    const { board, runs, decisions } = this.#options;
    const child = this.childOf(tx, parentTaskId, attempt);
    if (child === null || !isRunOpen(child.state) || isOther(life, child.retries)) return;
    const parentId = board.tasks.get(tx, parentTaskId)?.runId ?? null;
    const error = parentId === null ? null : (runs.get(tx, parentId)?.error ?? null);
    decisions.decide(tx, child, { kind: "cancel", parent: { error } });
  }

  /** Events during a pause had no effect yet. Stores one message for each remaining decision, and one for all other events. */
  resumed(tx: Tx, { id, backlog }: Run): void {
    const { runs, decisions } = this.#options;
    const run = runs.get(tx, id);
    if (run === null || backlog === null) return;
    const { nodes } = decisions.planOf(tx, run);
    const isAboutJoin = ({ node }: { node?: number }) => node !== undefined && nodes[node]?.kind === "join";
    // A join that a report has ended comes first: the steps that it waited for must not end it in another way.
    const waiting = backlogOf({ backlog }).sort((a, b) => Number(isAboutJoin(b)) - Number(isAboutJoin(a)));
    runs.put(tx, id, { ...run, backlog: JSON.stringify(waiting) });
    const rests = waiting.filter(isRest).length;
    const messages = rests + (waiting.length > rests ? 1 : 0);
    for (let at = 1; at < messages; at++) this.leave(tx, { kind: "go-on", runId: run.id });
    this.#goOn(tx, run.id);
  }

  /**
   * Decides some of the events that wait in a run, in order, and leaves another message for the rest. A paused run continues when it is
   * resumed. In a run that has ended, a retry uses what is left.
   */
  #goOn(tx: Tx, runId: string): void {
    const { runs, decisions, board, sliceTasks = happeningsMax } = this.#options;
    const run = runs.get(tx, runId);
    if (run?.state !== "running" || run.backlog === null) return;
    const waiting = backlogOf(run) as Happening[];
    const rest = waiting.findIndex(isRest);
    const some = waiting.slice(0, Math.max(1, Math.min(rest < 0 ? waiting.length : rest, sliceTasks)));
    const left = waiting.slice(some.length);
    runs.put(tx, runId, { ...run, backlog: left.length === 0 ? null : JSON.stringify(left) });
    for (let at = 0; at < some.length; at++) {
      const happening = some[at] as Happening;
      const now = runs.get(tx, runId);
      // The next pass of a durable function has begun: the other events belong to the pass before it.
      if (now === null || now.retries !== run.retries) return;
      // A retry continues behind the steps of these events.
      if (!isRunOpen(now.state)) return runs.put(tx, runId, { ...now, backlog: JSON.stringify([...some.slice(at), ...backlogOf(now)]) });
      if (now.recorded - run.recorded > recordsMax) {
        runs.put(tx, runId, { ...now, backlog: JSON.stringify([...some.slice(at), ...backlogOf(now)]) });
        return this.leave(tx, { kind: "go-on", runId });
      }
      const next = decisions.decide(tx, now, happening);
      if (next?.again && "node" in happening) board.ofRuns.tryAgain(tx, taskIdOf(runId, happening.node), next);
    }
    if (rest !== 0 && left.some((happening) => !isRest(happening))) this.leave(tx, { kind: "go-on", runId });
  }

  /** A child run has begun a new life. Its parent waits for it again, unless the parent has continued without it. */
  #reopenParent(tx: Tx, { taskId, attempt }: Message & { kind: "reopen-task" }): void {
    const { board, runs, decisions } = this.#options;
    const task = board.tasks.get(tx, taskId);
    const run = task?.runId == null ? null : runs.get(tx, task.runId);
    if (task === null || run === null || task.attempt !== attempt) return;
    if (isOpen(task.state) || task.state === "forgotten") return;
    const { node, state } = task;
    const { nodes, driven } = decisions.planOf(tx, run);
    if (driven || nodes[node]?.onFailure === "tolerate") return;
    if (isRunOpen(run.state) && this.#waitOn(tx, run, task)) return;
    const wasDone = state === "done";
    // A run that has also failed elsewhere would fail again at once.
    if (!isRunOpen(run.state) && (!wasDone || run.state === "succeeded" || run.state === "cancelled"))
      decisions.decide(tx, run, { kind: "reopen", node });
    else if (isRunOpen(run.state) && wasDone && !backlogOf(run).some(({ rest }) => rest !== undefined))
      decisions.decide(tx, run, { kind: "wait-again", node });
  }

  /** Returns whether the run is or was paused and has not yet handled the end of this step. Then that end is void. */
  #waitOn(tx: Tx, run: Run, task: TaskRow): boolean {
    const backlog = run.backlog === null ? [] : (JSON.parse(run.backlog) as Happening[]);
    const left = backlog.filter((happening) => !("node" in happening) || happening.node !== task.node);
    if (left.length === backlog.length) return false;
    this.#options.runs.put(tx, run.id, { ...run, backlog: left.length === 0 ? null : JSON.stringify(left) });
    this.#options.board.ofRuns.reopen(tx, task.id, task.streamed);
    return true;
  }

  #settleRecord(tx: Tx, task: TaskRow, how: Ending): void {
    const { board } = this.#options;
    const { state, error } = how;
    const fault = state === "cancelled" ? cancelledAlone : how.fault;
    if (state === "failed") {
      const failed = { kind: "failed" as const, error: error ?? "failed", retryable: fault !== "final" };
      board.ofRuns.close(
        tx,
        how.output === null ? task : { ...task, output: how.output },
        fault === "timed-out" ? { kind: "lost", ...(error === null ? {} : { error }) } : failed,
      );
      return;
    }
    board.ofRuns.settle(tx, task.id, { ...how, fault: fault ?? undefined });
    const { node } = task;
    const chars = how.output?.length ?? 0;
    this.#options.tell(tx, task, state === "done" ? { kind: "done", node, chars } : { kind: "ended", node, state, error, fault });
  }
}

/** Whether a child run that did not succeed can continue, so that no new one has to be started. */
function isSame(last: Run, child: NewChild | null): boolean {
  return child !== null && !("failed" in child) && originIdOf(last) === child.definitionId && last.input === child.input;
}

/** Returns true when a message is about another attempt or life than the current one. */
function isOther(said: number | undefined, is: number): boolean {
  return said !== undefined && said !== is;
}

/** Messages per page. */
const pageMax = 100;

export const messageTable: TableSpec<StoredMessage> = {
  name: "message",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["body", ({ message }) => JSON.stringify(message)],
  ],
  of: (row) => ({ id: row.id as number, message: JSON.parse(row.body as string) as Message }),
};

function isRest({ kind }: { readonly kind: string }): boolean {
  return kind === "go-on";
}
