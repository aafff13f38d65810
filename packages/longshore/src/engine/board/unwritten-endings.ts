// What has been decided about all tasks of a run, and is written in slices after it (run/open-tasks.ts): the run has ended, so its tasks are cancelled;
// or it has begun another life, so what was recorded about its steps is void. Until a row is written, each reader of it, in an operation or outside,
// gets the task as the slice will leave it: no claim is given it, and a report on it is refused. So no verb has to know that there are slices.

import { Marks } from "./marks.ts";
import type { TaskRow } from "./task.ts";
import { cancelledTask, forgottenTask } from "./task-end.ts";

interface Forgotten {
  readonly at: number;
  /** The last attempt of the life that is over, by node. A row with another attempt is of a later life. */
  readonly attempts: ReadonlyMap<number, number>;
}

export class Unwritten {
  readonly ended: Marks<{ readonly endedAt: number }> = new Marks();
  readonly forgotten: Marks<Forgotten> = new Marks();

  /** Resolves when all rows of the run are written; undefined when they are. */
  written(runId: string): Promise<void> | undefined {
    return this.ended.written(runId) ?? this.forgotten.written(runId);
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
