// One line about waiting tasks, with what to do.

import { formatDuration } from "../core/duration.ts";
import type { ProtocolHints } from "../protocols/hints.ts";
import type { WaitingNews } from "../server/index.ts";
import type { Paint } from "./terminal.ts";

export function waitingLine(news: WaitingNews, hints: readonly ProtocolHints[], paint: Paint): string {
  const what = `${news.step}${news.tasks > 1 ? ` and ${news.tasks - 1} more` : ""}`;
  if (news.kind === "ended") return `${paint("dim", "ended")} ${what} after waiting ${formatDuration(news.forMs)}`;
  if (news.kind === "over") return `${paint("green", "continues")} ${what}, after ${formatDuration(news.forMs)}`;
  const run = news.runId === null ? "" : paint("dim", ` (run ${news.runId})`);
  return `${paint("yellow", "waits")} ${what}${run}: ${news.text}.${adviceFor(news, hints, paint)}`;
}

/** The advice to start a worker; empty where that would not help. */
function adviceFor({ reason, lane, labels }: WaitingNews, hints: readonly ProtocolHints[], paint: Paint): string {
  if (reason !== "no-worker") return "";
  const owners = hints.filter(({ ownsLane }) => ownsLane?.(lane) === true);
  const workers = (owners.length > 0 ? owners : hints)
    .map(({ workerFor }) => workerFor({ name: lane, labels }))
    .filter((worker) => worker !== null);
  return workers.length === 0 ? "" : ` Start one: ${workers.map((worker) => paint("cyan", worker)).join(", or ")}`;
}
