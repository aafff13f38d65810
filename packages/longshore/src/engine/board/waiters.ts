// Idle long polls, and streams that wait for their next task. A waiter stays in its claim group until a task is handed to it, its time has
// passed, or its client disconnects. The task is handed over inside the transaction that queues it, so no wake-up is lost or wasted. If the
// client has disconnected when the transaction becomes durable, the task is given back.

import type { ClaimGroup } from "./claim-group.ts";
import type { TaskRow } from "./task.ts";

/** Two states: waiting (in its group) and settled. Settling twice does nothing. */
export class Waiter {
  readonly group: ClaimGroup;
  /** Null for an offer: the task that it gets has no holder yet. */
  readonly holder: string | null;
  readonly termMs: number;
  readonly offerMs: number | undefined;
  /** Order of arrival over all groups. */
  readonly arrival: number;
  readonly #settle: (task: TaskRow | null) => void;
  #settled = false;

  /** `settle` is called once: with the task that was handed out, or with null when the waiter left without one. */
  constructor(options: {
    group: ClaimGroup;
    holder: string | null;
    termMs: number;
    offerMs?: number;
    arrival: number;
    settle: (task: TaskRow | null) => void;
  }) {
    this.group = options.group;
    this.holder = options.holder;
    this.termMs = options.termMs;
    this.offerMs = options.offerMs;
    this.arrival = options.arrival;
    this.#settle = options.settle;
    this.group.join(this);
  }

  /** Removes the waiter from its group while a transaction decides. */
  reserve(): void {
    this.group.leave(this);
  }

  /** The transaction failed: puts the waiter back before those that arrived later, if it has not left in the meantime. */
  release(): void {
    if (!this.#settled) this.group.rejoin(this);
  }

  /** Called when the hand-out is durable. Returns false when the waiter had already left: the caller then gives the task back. */
  deliver(task: TaskRow): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    this.#settle(task);
    return true;
  }

  /** The wait has ended or the client has disconnected. */
  leave(): void {
    this.group.leave(this);
    if (this.#settled) return;
    this.#settled = true;
    this.#settle(null);
  }
}
