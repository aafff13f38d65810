// Orders to many runs: a job that is stored before it begins, and continues after a crash. Each run succeeds or fails alone.

import type { RunState } from "../run/run.ts";
import { isRunOpen } from "../run/run.ts";
import type { RunFilter } from "../run/run-summary.ts";

/** `rerun-from` begins again at one step of each run. */
export type BulkAction = "cancel" | "pause" | "resume" | "retry" | "rerun" | "remove" | "rerun-from";

/** What a caller orders. */
export interface BulkOrder {
  readonly action: BulkAction;
  /** The runs, or null for all that match the filter. */
  readonly ids: readonly string[] | null;
  /** For `rerun-from`: the step of each of these runs. */
  readonly steps?: readonly string[];
  readonly filter: RunFilter | null;
  /** How many runs at most get the order. */
  readonly limit: number;
  readonly reason: string | null;
  /** True: only count what it would do. */
  readonly dry: boolean;
  /** How many runs a second; null for as many as possible. */
  readonly perSecond: number | null;
}

/** A run whose order was refused. */
export interface Refused {
  readonly run: string;
  readonly error: string;
}

/** How far a job has come. */
export interface BulkProgress {
  readonly state: "running" | "done" | "stopped";
  /** Runs that got the order; of a dry job, those that would get it. */
  readonly done: number;
  /** Runs to which the order does not apply, by the reason. */
  readonly skipped: { readonly [reason: string]: number };
  readonly refused: number;
  /** The first of those that were refused. */
  readonly errors: readonly Refused[];
  /** Runs that the search has visited; null for a list of ids. */
  readonly looked: number | null;
  /** Stored runs, or the length of the list; null when it is not known. */
  readonly of: number | null;
}

export interface BulkJob extends BulkOrder, BulkProgress {
  readonly id: string;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** The name of the token that ordered it; null without one. */
  readonly caller: string | null;
}

export interface BulkJobs {
  /** Stores the job; it begins at once. Throws LONGSHORE_LIMIT while too many jobs are running. */
  create(order: BulkOrder): Promise<BulkJob>;
  job(id: string): Promise<BulkJob | undefined>;
  /** The newest first. */
  list(limit: number): Promise<readonly BulkJob[]>;
  /** Stops it after the runs whose orders are in progress. Undefined when there is none. */
  stop(id: string): Promise<BulkJob | undefined>;
  /** Resolves when the job has ended, or when `giveUp` aborts. */
  ended(id: string, giveUp: AbortSignal): Promise<void>;
}

/** Why the order does not apply to a run in this state; undefined when it does. */
export function whyNotBulk(action: BulkAction, state: RunState): string | undefined {
  const isOpen = isRunOpen(state);
  if (action === "rerun") return undefined;
  if (action === "retry" && state === "blocked") return undefined;
  if (action === "retry" && state === "succeeded") return "has succeeded";
  if (action === "resume" && state !== "paused") return isOpen ? "is not paused" : "has ended";
  if (action === "pause" && state === "paused") return "is paused already";
  const needsOpen = action === "cancel" || action === "pause" || action === "resume";
  if (needsOpen) return isOpen ? undefined : "has ended";
  return isOpen ? "is open" : undefined;
}
