// How many tasks each worker of the queues holds. The wire does not carry how many a worker runs at once, so a backend that knows its
// worker uses this. All of it is memory: what a worker held before a restart is counted from its next report on.

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

  /** Whether a worker of the queues holds it. */
  knows(taskId: string): boolean {
    return this.#holders.has(taskId);
  }

  /** Calls `ended` whenever the worker is done with a task, or has lost it. Ends by the function that is returned. */
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

  /** Workers come and go; one that is not read is not kept. */
  #tidy(workerId: string, worker: Worker): void {
    if (worker.count === 0 && worker.listeners.size === 0) this.#workers.delete(workerId);
  }
}
