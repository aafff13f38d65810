// What happens when a deadline of a task has passed: the end of a lease, of a delay, or of a timeout.

import type { Clock } from "../../core/clock.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Tx } from "../tx.ts";
import type { Closing } from "./attempts.ts";
import { type Limits, parkingKey } from "./limits.ts";
import type { Follower } from "./local-follower.ts";
import { placeOf, type ReadyQueues } from "./ready-queues.ts";
import { isDriver, isOpen, nextDeadline, passedDeadline, type TaskRow } from "./task.ts";
import type { TaskLife } from "./task-life.ts";

/** Deadlines of runs share the heap with those of tasks. */
export const runDeadlinePrefix = "run:";

export interface ExpiryDeps {
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly tasks: Rows<TaskRow>;
  readonly limits: Limits;
  readonly queues: ReadyQueues;
  readonly life: TaskLife;
  readonly runs: () => Follower;
  /** The time of the next deadline of `id`; null when it has none. */
  deadline(id: string, at: number | null): void;
}

export class LocalExpiry {
  readonly #deps: ExpiryDeps;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  /** One operation for each id, so that a failing one does not block the others. */
  async expire(ids: readonly string[]): Promise<void> {
    const { commit, runs } = this.#deps;
    const expiries = ids.map((id) =>
      commit.run((tx) => {
        if (id.startsWith(runDeadlinePrefix)) runs().expireRun(tx, id.slice(runDeadlinePrefix.length));
        else this.#expireTask(tx, id);
      }),
    );
    const failed = (await Promise.allSettled(expiries)).find((expiry) => expiry.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  #expireTask(tx: Tx, id: string): void {
    const { clock, tasks, queues, life, deadline } = this.#deps;
    const now = clock.now();
    const task = tasks.get(tx, id);
    if (task === null || !isOpen(task.state)) return;
    const earliest = passedDeadline(task, now);
    const claimRuns = earliest !== "claimBy" || !this.#mayNotBeTaken(task, now);
    // `totalBy` ends the task even while its time to be claimed does not run.
    const passed = claimRuns || task.totalBy === null || task.totalBy > now ? earliest : "totalBy";
    const closing: Closing = { now, by: "expire", receipt: null };
    if (passed === null && task.state === "queued" && task.lane === null && task.dueAt <= now && !isDriver(task))
      life.wake(tx, task, closing);
    else if (passed === null) {
      // The task's delay has ended, or the window that it was parked for has opened. A deadline that was moved is only registered again.
      if (task.state === "queued" && task.dueAt <= now) queues.due(tx, task, now);
      const next = nextDeadline(task, now);
      if (next !== null) tx.after(() => deadline(id, next));
    } else if (task.state === "cancelling")
      life.end(tx, task, "cancelled", closing, { output: task.output, error: null, fault: task.fault ?? undefined });
    else if (passed === "claimBy" && !claimRuns) {
      const later = Math.min(now + (task.claimMs as number), task.totalBy ?? Number.POSITIVE_INFINITY);
      tx.after(() => deadline(id, later));
    } else if (task.state === "offered" && passed === "holdUntil")
      life.requeue(tx, task, closing, task, { keepsPlace: true, claimBy: task.claimBy });
    else life.close(tx, task, closing, passed === "holdUntil" ? { kind: "lost" } : { kind: "timed-out", which: passed });
  }

  /** Whether the task waits for room under a limit, so that its time to be claimed does not run. */
  #mayNotBeTaken(task: TaskRow, now: number): boolean {
    const { limits } = this.#deps;
    const { lane } = task;
    const pausing = task.limits.filter(({ pausesClaim }) => pausesClaim);
    if (task.state !== "queued" || lane === null || pausing.length === 0) return false;
    return limits.blocked(pausing, now) !== null || pausing.some((limit) => limits.isParked(parkingKey(limit, lane), placeOf(task)));
  }
}
