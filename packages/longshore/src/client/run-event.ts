// The changes of a run and its tasks, as a client receives them.

import type { RunState } from "./client.ts";

/** The run, or one of its tasks, after a change. */
export type RunEvent = RunChanged | TaskChanged;

/** The run after a change. Times are epoch milliseconds. */
export interface RunChanged {
  readonly kind: "run";
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  /** Steps that have not settled, and steps that failed. */
  readonly left: number;
  readonly failed: number;
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** A task of the run after a change. Times are epoch milliseconds. */
export interface TaskChanged {
  readonly kind: "task";
  readonly id: string;
  readonly runId: string | null;
  readonly workflow: string | null;
  readonly step: string;
  /** `sleeping`: it waits for a time. `awaiting`: it waits for a signal, a child run, or the steps of a function. */
  readonly state:
    | "queued"
    | "sleeping"
    | "awaiting"
    | "offered"
    | "held"
    | "cancelling"
    | "done"
    | "failed"
    | "cancelled"
    | "skipped"
    | "forgotten";
  /** From 1. */
  readonly attempt: number;
  /** The worker that has it. */
  readonly holder: string | null;
  readonly error: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}
