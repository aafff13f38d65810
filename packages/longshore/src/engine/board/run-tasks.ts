// Tasks as their runs change them, inside the operation that decides about the run. Reports of workers are in local-board.ts.

import type { Clock } from "../../core/clock.ts";
import type { Rows } from "../cached-rows.ts";
import type { Closure, NextTry } from "../run/retry.ts";
import { taskChars } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import type { Closing } from "./attempts.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import { type EndState, type Fault, isOpen, type TaskRow } from "./task.ts";
import { cancelledTask, forgottenTask } from "./task-end.ts";
import type { TaskLife } from "./task-life.ts";
import type { Unwritten } from "./unwritten-endings.ts";

export interface RunTasksDeps {
  readonly tasks: Rows<TaskRow>;
  readonly queues: ReadyQueues;
  readonly life: TaskLife;
  readonly unwritten: Unwritten;
  readonly clock: Clock;
}

export class RunTasks {
  readonly #deps: RunTasksDeps;

  constructor(deps: RunTasksDeps) {
    this.#deps = deps;
  }

  /** Puts a new task on the board, or a record beside it when it has no lane. `again`: it may have lived before. */
  place(tx: Tx, task: TaskRow, again: boolean, keepsCounting = false): void {
    // What its row says may be of a life that is over.
    if (again && task.runId !== null && this.#deps.unwritten.forgotten.get(task.runId) !== undefined)
      this.#forgetLast(tx, task.runId, task);
    this.#deps.life.place(tx, task, again, keepsCounting);
  }

  /** A record that waited for something has come to its end, and its run knows. */
  settle(tx: Tx, taskId: string, how: { state: EndState; output: string | null; error: string | null; fault?: Fault }): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || task.state !== "queued") return;
    const ended = { state: how.state, output: how.output, error: how.error, fault: how.fault ?? null, overdue: null };
    this.#deps.tasks.put(tx, taskId, { ...task, ...ended, endedAt: this.#deps.clock.now(), claimBy: null });
  }

  /** An attempt of a record closed without a result, as its child run reports. */
  close(tx: Tx, task: TaskRow, closure: Closure): void {
    this.#deps.life.close(tx, task, { now: this.#deps.clock.now(), by: "fail", receipt: null }, closure);
  }

  /** A record that had ended waits again, as the same attempt. `streamed`: its run has continued behind it. */
  reopen(tx: Tx, taskId: string, streamed = false): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || isOpen(task.state)) return;
    const now = this.#deps.clock.now();
    const waiting = { state: "queued", output: null, error: null, fault: null, overdue: null, endedAt: null, streamed } as const;
    this.#deps.tasks.put(tx, taskId, { ...task, ...waiting, queuedAt: now, dueAt: now });
  }

  /** An attempt that ended while its run was paused is followed by another after all. */
  tryAgain(tx: Tx, taskId: string, next: NextTry & { again: true }): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || isOpen(task.state)) return;
    const closing: Closing = { now: this.#deps.clock.now(), by: task.closedBy ?? "fail", receipt: task.closedReceipt };
    this.#deps.life.nextAttempt(tx, task, closing, { error: task.error, fault: task.fault, overdue: task.overdue }, next);
  }

  /** A delay is over before its time. Returns how many characters the task's row has. */
  hasten(tx: Tx, taskId: string): number {
    const task = this.#deps.tasks.get(tx, taskId);
    const now = this.#deps.clock.now();
    if (task?.state === "queued" && task.lane !== null && task.dueAt > now) {
      const due = { ...task, dueAt: now };
      this.#deps.tasks.put(tx, taskId, due);
      this.#deps.queues.join(tx, due, now);
    }
    return task === null ? 0 : taskChars(task);
  }

  /** Cancels an open task without telling its run. Returns how many characters its row has. */
  cancelOne(tx: Tx, taskId: string, now: number, fault?: Fault): number {
    const task = this.#deps.tasks.own(tx, taskId);
    if (task === null) return 0;
    const cancelled = cancelledTask(task, now, fault);
    if (cancelled !== task) this.#deps.life.replace(tx, task, cancelled, now);
    return taskChars(task);
  }

  /** The slice has not come to this step yet, which begins in its next life. */
  #forgetLast(tx: Tx, runId: string, { id, node }: TaskRow): void {
    const forgotten = this.#deps.unwritten.forgotten.get(runId);
    const attempt = forgotten?.attempts.get(node);
    if (forgotten !== undefined && attempt !== undefined) this.forget(tx, id, forgotten.at, attempt);
  }

  /** What is recorded about a step is void. With `attempt`, only if that is its last. Returns how many characters its row has. */
  forget(tx: Tx, taskId: string, now: number, attempt?: number): number {
    const task = this.#deps.tasks.own(tx, taskId);
    if (task === null) return 0;
    const forgotten = attempt === undefined || attempt === task.attempt ? forgottenTask(task, now) : task;
    if (forgotten !== task) {
      this.#deps.tasks.put(tx, taskId, forgotten);
      this.#deps.life.leaveLife(tx, task, now);
    }
    return taskChars(task);
  }
}
