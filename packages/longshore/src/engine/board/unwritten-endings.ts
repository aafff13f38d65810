// A decision about all tasks of a run that is written in slices afterwards (run/open-tasks.ts): the run has ended, so its tasks are
// cancelled; or it has started another life, so the records of its steps are void. Until a row is written, every reader of it, inside and
// outside operations, gets the task as the slice will leave it: no claim receives it, and a report on it is refused. So no verb has to know
// about slices.

import { Marks } from "./marks.ts";
import type { TaskRow } from "./task.ts";
import { cancelledTask, forgottenTask } from "./task-end.ts";

interface Forgotten {
  readonly at: number;
  /** The last attempt of the ended life, by node. A row with another attempt belongs to a later life. */
  readonly attempts: ReadonlyMap<number, number>;
}

export class Unwritten {
  readonly ended: Marks<{ readonly endedAt: number }> = new Marks();
  readonly forgotten: Marks<Forgotten> = new Marks();
  /** Failed runs whose newest successor is not started yet: its input is made from the failed run. */
  readonly unfollowed: Marks<{ readonly successor: string }> = new Marks();

  /** Resolves when all rows of the run are written; undefined when they are written already. */
  written(runId: string): Promise<void> | undefined {
    return this.ended.written(runId) ?? this.forgotten.written(runId);
  }

  /** Resolves when the run is not needed any more and may be removed; undefined when it may be removed now. */
  released(runId: string): Promise<void> | undefined {
    return this.written(runId) ?? this.unfollowed.written(runId);
  }

  /** The task as the slices leave it. */
  readonly seen = (task: TaskRow): TaskRow => {
    const { runId } = task;
    if (runId === null || (this.ended.size === 0 && this.forgotten.size === 0)) return task;
    const forgotten = this.forgotten.get(runId);
    if (forgotten !== undefined && forgotten.attempts.get(task.node) === task.attempt) return forgottenTask(task, forgotten.at);
    const ended = this.ended.get(runId);
    return ended === undefined ? task : cancelledTask(task, ended.endedAt);
  };
}
