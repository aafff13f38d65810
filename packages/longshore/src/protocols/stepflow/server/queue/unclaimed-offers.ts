// Hand-outs that no worker has claimed yet. A backend waits here for the outcome of each: taken, by a first heartbeat or a report; or
// lapsed, because its time is over or the task was cancelled. A worker may still report on a lapsed hand-out: then it has at least read it
// and can get another task.

import { isOpen, type TaskRow } from "../../../../engine/board/task.ts";

export type Outcome = "taken" | "lapsed";

interface Watched {
  readonly grant: number;
  settle(outcome: Outcome): void;
}

export class UnclaimedOffers {
  /** By the board's id: a task has one current hand-out. */
  readonly #watched = new Map<string, Watched>();
  /** By wire id: lapsed hand-outs that a backend still waits for. */
  readonly #unheard = new Map<string, () => void>();

  get size(): number {
    return this.#watched.size;
  }

  /** Calls `settle` once. The returned function ends the watch. */
  watch(task: Pick<TaskRow, "id" | "grant">, settle: (outcome: Outcome) => void): () => void {
    const watched: Watched = { grant: task.grant, settle };
    this.#watched.set(task.id, watched);
    return () => {
      if (this.#watched.get(task.id) === watched) this.#watched.delete(task.id);
    };
  }

  watches(taskId: string): boolean {
    return this.#watched.has(taskId);
  }

  /** Calls `heard` when a worker reports on this hand-out. The returned function ends it. */
  listenFor(wireId: string, heard: () => void): () => void {
    this.#unheard.set(wireId, heard);
    return () => {
      if (this.#unheard.get(wireId) === heard) this.#unheard.delete(wireId);
    };
  }

  /** Must be called for each task that a commit changed. */
  changed(task: TaskRow): void {
    const watched = this.#watched.get(task.id);
    if (watched === undefined || (task.state === "offered" && task.grant === watched.grant)) return;
    this.#watched.delete(task.id);
    watched.settle(wasTaken(task, watched.grant) ? "taken" : "lapsed");
  }

  /** Must be called for each report, whatever its result is. */
  heard(wireId: string): void {
    this.#unheard.get(wireId)?.();
  }
}

/** A worker runs the task, or has reported on it without a heartbeat. */
function wasTaken(task: TaskRow, grant: number): boolean {
  if (task.grant === grant && isOpen(task.state)) return true;
  return task.closedGrant === grant && (task.closedBy === "complete" || task.closedBy === "fail");
}
