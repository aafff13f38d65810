// How many tasks each queue worker holds. The wire does not say how many tasks a worker can run at once, so backends use these counts
// instead. They are in memory only: after a restart a task counts from its worker's next report.

import type { TaskRow } from "../../../../engine/board/task.ts";

interface Worker {
  count: number;
  readonly listeners: Set<() => void>;
}

export class HeldCounts {
  readonly #holders = new Map<string, string>();
  readonly #workers = new Map<string, Worker>();

  count(workerId: string): number {
    return this.#workers.get(workerId)?.count ?? 0;
  }

  /** Whether a queue worker holds the task. */
  knows(taskId: string): boolean {
    return this.#holders.has(taskId);
  }

  /** Calls `ended` whenever the worker finishes or loses a task. The returned function ends it. */
  listenFor(workerId: string, ended: () => void): () => void {
    const worker = this.#of(workerId);
    worker.listeners.add(ended);
    return () => {
      worker.listeners.delete(ended);
      this.#tidy(workerId, worker);
    };
  }

  /** Must be called for each task that a commit changed. */
  changed(task: TaskRow): void {
    const holder = task.state === "held" || task.state === "cancelling" ? task.holder : null;
    const before = this.#holders.get(task.id) ?? null;
    if (before === holder) return;
    if (holder === null) this.#holders.delete(task.id);
    else {
      this.#holders.set(task.id, holder);
      this.#of(holder).count++;
    }
    if (before !== null) this.#leave(before);
  }

  #leave(workerId: string): void {
    const worker = this.#of(workerId);
    worker.count--;
    for (const ended of [...worker.listeners]) ended();
    this.#tidy(workerId, worker);
  }

  #of(workerId: string): Worker {
    let worker = this.#workers.get(workerId);
    if (worker === undefined) {
      worker = { count: 0, listeners: new Set() };
      this.#workers.set(workerId, worker);
    }
    return worker;
  }

  /** Removes a worker without tasks and listeners. */
  #tidy(workerId: string, worker: Worker): void {
    if (worker.count === 0 && worker.listeners.size === 0) this.#workers.delete(workerId);
  }
}
