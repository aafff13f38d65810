// Changes of tasks that their runs request, inside the operation that decides about the run. Reports of workers are in local-board.ts.

import type { Clock } from "../../core/clock.ts";
import type { Rows } from "../cached-rows.ts";
import type { Closure, NextTry } from "../run/retry.ts";
import { taskChars } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import type { Closing } from "./attempts.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import { type EndState, type Fault, isOpen, type Lane, type TaskRow } from "./task.ts";
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

  /** Puts a new task on its lane, or stores a record when it has no lane. `again`: the task may exist from an earlier life of its run. */
  place(tx: Tx, task: TaskRow, again: boolean, keepsCounting = false): void {
    // The task's row may still describe an earlier life of the run.
    if (again && task.runId !== null && this.#deps.unwritten.forgotten.get(task.runId) !== undefined)
      this.#forgetLast(tx, task.runId, task);
    this.#deps.life.place(tx, task, again, keepsCounting);
  }

  /** Ends a record that waited for something. The caller has informed the run. */
  settle(tx: Tx, taskId: string, how: { state: EndState; output: string | null; error: string | null; fault?: Fault }): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || task.state !== "queued") return;
    const ended = { state: how.state, output: how.output, error: how.error, fault: how.fault ?? null, overdue: null };
    this.#deps.tasks.put(tx, taskId, { ...task, ...ended, endedAt: this.#deps.clock.now(), claimBy: null });
  }

  /** Ends a record that waited for something with a result, and informs its run. */
  complete(tx: Tx, task: TaskRow, output: string): void {
    this.#deps.life.wake(tx, task, { now: this.#deps.clock.now(), by: "complete", receipt: null }, output);
  }

  /** Closes an attempt of a record without a result, as its child run reports. */
  close(tx: Tx, task: TaskRow, closure: Closure): void {
    this.#deps.life.close(tx, task, { now: this.#deps.clock.now(), by: "fail", receipt: null }, closure);
  }

  /** Reopens a record that had ended, as the same attempt. `streamed`: its run has already continued with the steps after it. */
  reopen(tx: Tx, taskId: string, streamed = false): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || isOpen(task.state)) return;
    const now = this.#deps.clock.now();
    const waiting = { state: "queued", output: null, error: null, fault: null, overdue: null, endedAt: null, streamed } as const;
    const claimBy = task.claimMs === null ? null : now + task.claimMs;
    this.#deps.tasks.put(tx, taskId, { ...task, ...waiting, queuedAt: now, dueAt: now, claimBy });
  }

  /** Queues the task of a durable function for its next turn, if it waits for one. */
  turn(tx: Tx, taskId: string, lane: Lane, input: string, claimMs: number | null): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task?.state === "queued" && task.lane === null) this.#deps.life.turn(tx, task, lane, input, claimMs);
  }

  /** Writes the number of a command's result. */
  number(tx: Tx, taskId: string, ordinal: number): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task !== null) this.#deps.tasks.put(tx, taskId, { ...task, ordinal });
  }

  /** Starts another attempt after one that ended while its run was paused. */
  tryAgain(tx: Tx, taskId: string, next: NextTry & { again: true }): void {
    const task = this.#deps.tasks.get(tx, taskId);
    if (task === null || isOpen(task.state)) return;
    const closing: Closing = { now: this.#deps.clock.now(), by: task.closedBy ?? "fail", receipt: task.closedReceipt };
    this.#deps.life.nextAttempt(tx, task, closing, { error: task.error, fault: task.fault, overdue: task.overdue }, next);
  }

  /** Ends a task's delay early. Returns the number of characters in the task's row. */
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

  /** Cancels an open task without notifying its run. Returns the number of characters in its row. */
  cancelOne(tx: Tx, taskId: string, now: number, fault?: Fault): number {
    const task = this.#deps.tasks.own(tx, taskId);
    if (task === null) return 0;
    const cancelled = cancelledTask(task, now, fault);
    if (cancelled !== task) this.#deps.life.replace(tx, task, cancelled, now);
    return taskChars(task);
  }

  /** For a step that starts again before the slice has reached its row: forgets the step's last life. */
  #forgetLast(tx: Tx, runId: string, { id, node }: TaskRow): void {
    const forgotten = this.#deps.unwritten.forgotten.get(runId);
    const attempt = forgotten?.attempts.get(node);
    if (forgotten !== undefined && attempt !== undefined) this.forget(tx, id, forgotten.at, attempt);
  }

  /** Makes the record of a step void. With `attempt`, only if that is its last attempt. Returns the number of characters in its row. */
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
