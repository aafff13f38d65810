// Turns of durable functions that come with the result of a step, before they are handed out (`ForeseenTurn` in core/turn.ts).

import type { Turn } from "../../core/turn.ts";
import type { Verdict } from "../../core/verdict.ts";
import type { Rows } from "../cached-rows.ts";
import { taskIdOf } from "../run/run.ts";
import type { Tx } from "../tx.ts";
import type { HandOut, ReadyQueues } from "./ready-queues.ts";
import type { ForeseenReport, Report } from "./store.ts";
import type { TaskRow } from "./task.ts";

export interface SettlingDeps {
  readonly tasks: Rows<TaskRow>;
  readonly queues: ReadyQueues;
  /** Applies a report. */
  settle(report: Report): Verdict;
}

/** Applies the result of a step. Also applies the turn that came with it, if the result really brings this turn. */
export function settleWithTurn(
  tx: Tx,
  { tasks, queues, settle }: SettlingDeps,
  report: Report,
  turn: ForeseenReport,
  to: HandOut,
): { verdict: Verdict; tookTurn: boolean } {
  const { runId = null } = tasks.get(tx, report.hold.taskId) ?? {};
  let verdict: Verdict = "gone";
  const driver = queues.holdBack(runId === null ? "" : taskIdOf(runId, 0), () => {
    verdict = settle(report);
  });
  if (driver === null) return { verdict, tookTurn: false };
  if (!isForeseen(driver.input, turn)) {
    queues.join(tx, driver, to.now);
    return { verdict, tookTurn: false };
  }
  const { id: taskId, grant } = queues.handOut(tx, driver, to);
  settle({ verb: "complete", hold: { taskId, grant }, output: turn.report });
  return { verdict, tookTurn: true };
}

/** Whether the turn has the result of that step and nothing else. */
function isForeseen(input: string, { from, node, at }: ForeseenReport): boolean {
  const turn = JSON.parse(input) as Turn;
  const [result] = turn.results;
  const isAlone = turn.upTo === turn.after + 1 && turn.results.length === 1;
  return turn.by === from && isAlone && result?.node === node && result.state === "done" && result.at === at;
}

/** When the step ended: when its function received the result, since a replay must see the same time. */
export function endOf({ startedAt }: TaskRow, turn: ForeseenReport | undefined, now: number): number {
  return turn === undefined || startedAt === null ? now : Math.min(Math.max(turn.at, startedAt), now);
}
