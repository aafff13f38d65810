// Runs that have ended and whose tasks are still being ended. The end of a run is one small transaction, however many tasks are open; its tasks follow in
// slices (run/open-tasks.ts). Until then a row may say that such a task is queued or held. Each reader of the row, in an operation or outside,
// gets the task as the slice will leave it: no claim is given it, and a report on it is refused. So no verb has to know that there are slices.

import type { Tx } from "../tx.ts";
import type { Task } from "./task.ts";
import { cancelledTask } from "./task-end.ts";

interface EndedRun {
  readonly endedAt: number;
  /** Resolves when no task of it is open. */
  readonly quiet: Promise<void>;
  readonly resolve: () => void;
}

export class EndedRuns {
  readonly #runs = new Map<string, EndedRun>();

  /** From now on its tasks have ended, whatever their rows say. */
  add(tx: Tx, runId: string, endedAt: number): void {
    this.restore(runId, endedAt);
    tx.undo(() => this.#runs.delete(runId));
  }

  /** At the start of the server. */
  restore(runId: string, endedAt: number): void {
    let resolve = () => {};
    const quiet = new Promise<void>((done) => {
      resolve = done;
    });
    this.#runs.set(runId, { endedAt, quiet, resolve });
  }

  /** The rows of its tasks are right. */
  remove(tx: Tx, runId: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    this.#runs.delete(runId);
    tx.undo(() => this.#runs.set(runId, run));
    tx.after(run.resolve);
  }

  /** Undefined when the rows of its tasks are right. */
  quiet(runId: string): Promise<void> | undefined {
    return this.#runs.get(runId)?.quiet;
  }

  /** The task as its run's end leaves it. */
  readonly seen = (task: Task): Task => {
    if (this.#runs.size === 0 || task.runId === null) return task;
    const run = this.#runs.get(task.runId);
    return run === undefined ? task : cancelledTask(task, run.endedAt);
  };
}
