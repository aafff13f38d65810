// Two decisions change all tasks of a run, and are written in slices afterwards (run/open-tasks.ts). The end of a run cancels its open
// tasks. Another life of a run makes the records of its steps void. Until a row is written, readers get the task as its slice will write
// it. Operations get it at once, others after the commit. So no claim receives such a task, and a report on it is refused.

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

  /** The task as the slices leave it, for an operation or for a reader outside of operations. */
  readonly seen = (task: TaskRow, isOperation: boolean): TaskRow => {
    const { runId } = task;
    if (runId === null || (this.ended.isEmpty(isOperation) && this.forgotten.isEmpty(isOperation))) return task;
    const forgotten = this.forgotten.seen(runId, isOperation);
    if (forgotten !== undefined && forgotten.attempts.get(task.node) === task.attempt) return forgottenTask(task, forgotten.at);
    const ended = this.ended.seen(runId, isOperation);
    return ended === undefined ? task : cancelledTask(task, ended.endedAt);
  };
}
