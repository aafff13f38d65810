// What the board reports to the runs.

import type { Closure, NextTry } from "../run/retry.ts";
import type { Tx } from "../tx.ts";
import type { EndState, TaskRow } from "./task.ts";

/** What a settled task means for its run. Implemented by the runs, called in the same operation. */
export interface Follower {
  done(tx: Tx, task: TaskRow): void;
  closed(tx: Tx, task: TaskRow, closure: Closure): NextTry;
  ended(tx: Tx, task: TaskRow, state: EndState, error: string | null): void;
  /** A durable function has reported a turn, or commands in the middle of one. */
  turned(tx: Tx, task: TaskRow, report: string, isOver: boolean): Turned;
  /** The input of a turn of a durable function that is handed out again. */
  turnAgain(tx: Tx, task: TaskRow): string;
  /** An attempt of a record without a lane has ended: its child run should stop too. */
  abandoned(tx: Tx, task: TaskRow): void;
  /** A record that waits for a signal begins to wait again, as another attempt. */
  waitsAgain(tx: Tx, task: TaskRow): void;
  /** Whether workers may report on this record, which has no lane. */
  takesReports(tx: Tx, task: TaskRow): boolean;
  expireRun(tx: Tx, runId: string): void;
}

/** `refused`: why the report is refused; null when it is not. `news`: the reply to a turn that continues, JSON text (core/turn.ts). */
export interface Turned {
  refused: string | null;
  news: string | null;
}
