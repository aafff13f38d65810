// The state of a worker, and its counters.

import type { Events, TaskEvent } from "./events.ts";

/** The state of a worker at one moment, from `worker.status()`. */
export interface RunnerStatus {
  readonly state: "running" | "draining" | "stopped";
  /** A slot is free while nothing runs in it, even when it is reserved for a poll. */
  readonly slots: { readonly total: number; readonly free: number };
  /** The names of the tasks that this worker can run. */
  readonly tasks: readonly string[];
  readonly running: readonly (TaskEvent & { readonly runningMs: number })[];
  /** Since the start of this worker. */
  readonly counts: Readonly<Counts>;
  readonly transports: readonly TransportStatus[];
}

/** The state of one connection of a worker to an orchestrator. */
export interface TransportStatus {
  readonly name: string;
  /** The current failure, if any; the transport keeps retrying. */
  readonly failing: { readonly sinceMs: number; readonly error: string } | undefined;
}

/** How many executions of a worker ended in each way since it started. */
export interface Counts {
  done: number;
  failed: number;
  deferred: number;
  /** Ended without a delivered report: the lease was lost, or the peer could not be reached in time. */
  lost: number;
  abandoned: number;
  logLinesDropped: number;
  /** Events that were dropped because a listener was too slow. */
  eventsDropped: number;
}

/**
 * The ends of tasks are not counted here. They are counted where they are reported, because an event is created only when it has a
 * listener.
 */
export function countEvents(events: Events): Counts {
  const counts: Counts = { done: 0, failed: 0, deferred: 0, lost: 0, abandoned: 0, logLinesDropped: 0, eventsDropped: 0 };
  events.watch("taskAbandoned", () => counts.abandoned++);
  events.watch("logsDropped", ({ lines }) => {
    counts.logLinesDropped += lines;
  });
  return counts;
}
