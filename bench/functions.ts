// Durable functions: runs a second beside Restate, the cost of a late step, and what sleeping runs cost.
import { growthReport, growthRound, sleepingReport, sleepingRound } from "./functions-life.ts";
import { QUICK_TIMES, rateReport, rateRound, TIMES } from "./functions-rate.ts";
import type { Options, Report } from "./report.ts";
import { restatePeer } from "./restate-peer.ts";

export async function functions({ rounds: count, quick, only }: Options): Promise<Report> {
  const wants = (part: string): boolean => only === undefined || only === part;
  const rounds = Array.from({ length: count }, (_, round) => round);
  const reports: Report[] = [];
  if (wants("rate")) {
    const peer = restatePeer();
    reports.push(rateReport(await inTurn(rounds, () => rateRound(peer, quick ? QUICK_TIMES : TIMES)).then((each) => each.flat())));
  }
  if (wants("growth")) reports.push(growthReport(await inTurn(rounds, () => growthRound(quick))));
  // It takes long, and its figures do not depend on the other parts: once is enough.
  if (wants("sleeping")) reports.push(sleepingReport([await sleepingRound(quick)], quick));
  return {
    tables: reports.flatMap(({ tables }) => tables),
    targets: reports.flatMap(({ targets }) => targets),
    violations: reports.flatMap(({ violations }) => violations),
    checked: reports.reduce((sum, { checked }) => sum + checked, 0),
    rounds: reports.map(({ rounds: each }) => each),
  };
}

async function inTurn<T>(rounds: readonly number[], measure: () => Promise<T>): Promise<T[]> {
  const measured: T[] = [];
  for (const _ of rounds) measured.push(await measure());
  return measured;
}
