// The board's port to a store. Each verb is one durable step, except that a plain `extend` may change only memory. Calls that arrive
// together share a commit. A promise resolves only after the commit that holds the change; it rejects with LONGSHORE_STORE_UNAVAILABLE when
// nothing can be written now, and then nothing has changed.

import type { ForeseenTurn } from "../../core/turn.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { Halts } from "./halts.ts";
import type { Reach } from "./lanes.ts";
import type { LimitChanges } from "./limit-changes.ts";
import type { LimitKey } from "./limits.ts";
import type { Hold, Lane, TaskRow } from "./task.ts";

export interface ClaimRequest {
  reach: Reach;
  /** Null for an offer: the holder becomes known at the first extend. */
  holder: string | null;
  /** How long a hold lasts without an extend. */
  termMs: number;
  /** How long an offer waits for its first extend. Default: `termMs`. */
  offerMs?: number;
  /** At most this many tasks; the store may return fewer. */
  max: number;
}

/** A claim or an offer that found no task and waits for one. */
export interface Standing {
  /** Called once: with the task after the commit that hands it out, or with null when the wait was cancelled. */
  settle(task: TaskRow | null): void;
}

/** Cancels a waiting claim. Safe to call at any time, more than once. */
export type Leave = () => void;

/** `receipt` is stored with the closed grant, so that a protocol can recognise a repeated report; opaque to the store. */
export type Report = { hold: Hold /** Who reports, when no worker has held it. */; by?: string } & (
  | { verb: "complete"; output: string; merge?: boolean; receipt?: string; turn?: ForeseenReport }
  | { verb: "fail"; error: string; retryable: boolean; spends?: "lost"; delayMs?: number; receipt?: string; output?: string }
  /**
   * `unseen`: no worker has run the task, so this hand-out does not count as a deferral. `unlessTaken`: only while the task is offered;
   * `busy` is returned when a worker has taken it.
   */
  | { verb: "defer"; delayMs: number; output?: string; unseen?: boolean; unlessTaken?: boolean }
);

/** A `ForeseenTurn` (core/turn.ts) whose report is JSON text. */
export type ForeseenReport = Omit<ForeseenTurn, "report"> & { readonly report: string };

/** The reply to a report with a claim. */
export interface SettledAndClaimed {
  verdict: Verdict;
  task: TaskRow | null;
  /** The turn that came with the report was accepted. */
  tookTurn: boolean;
}

/** Options of an extend. */
export interface Extending {
  /** JSON text that replaces the output so far. */
  output?: string;
  /** Becomes the holder of an offered task. */
  holder?: string;
  /** New term of the hold without an extend, for a holder that chooses it. The task's own `holdMs` is still the maximum. */
  termMs?: number;
}

export interface Extension {
  verdict: Verdict;
  /** End of the hold after this extend; null when the verdict is neither `ok` nor `cancel`. */
  holdUntil: number | null;
}

/** The reply to commands in the middle of a turn. `news` is JSON text (core/turn.ts), when the report asks for it. */
export interface Commanded {
  verdict: Verdict;
  news: string | null;
}

/** A task that belongs to no run. */
export interface NewTaskRow {
  id: string;
  step: string;
  lanes: readonly Lane[];
  input: string;
  priority?: number;
  delayMs?: number;
  policy: string | null;
  limits?: readonly LimitKey[];
  holdMs?: number;
  claimMs?: number;
  endMs?: number;
  totalMs?: number;
}

export interface BoardStore {
  /** Paused lanes and cordoned workers. */
  readonly halts: Halts;
  readonly limitChanges: LimitChanges;
  /** Posts tasks that belong to no run. A task whose id exists stays unchanged: a caller that received no response may post again. */
  post(tasks: readonly NewTaskRow[]): Promise<void>;
  /**
   * Hands out up to `max` queued tasks, best first: held, or offered when the request names no holder. With `standing`, a claim that finds
   * no task waits until it is settled or cancelled; `leave` is passed before the promise resolves.
   */
  claim(request: ClaimRequest, standing?: Standing): Promise<{ tasks: TaskRow[]; leave: Leave | null }>;
  /** Renews a hold. A renewal without new data need not be written: at start every live hold gets a full term. */
  extend(hold: Hold, options?: Extending): Promise<Extension>;
  /** Applies a report; what follows for the task's run is decided and written in the same transaction. */
  settle(report: Report): Promise<Verdict>;
  /** The same for a worker that can take another task. If the report is accepted, the same transaction hands one out. */
  settleAndClaim(report: Report, request: ClaimRequest): Promise<SettledAndClaimed>;
  /** Adds commands of a durable function in the middle of its turn. `report` is JSON text (core/turn.ts). */
  command(hold: Hold, report: string): Promise<Commanded>;
  /** The receipt of the report that closed this grant; undefined when there is none. */
  receipt(taskId: string, grant: number): Promise<string | undefined>;
  /** Cancels one task, with or without a holder. Returns false when it had already ended. */
  cancelTask(taskId: string): Promise<boolean>;
  /** The holder reports that the task was cancelled: no worker has to be stopped. */
  withdraw(hold: Hold, why: { error: string; output?: string; by?: string }): Promise<Verdict>;
  /** Checks tasks and runs whose deadline may have passed, and does what is due. */
  expire(ids: readonly string[]): Promise<void>;
  task(taskId: string): Promise<TaskRow | undefined>;
}
