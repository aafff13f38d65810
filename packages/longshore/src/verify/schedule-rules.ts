// The rules for one schedule.

import type { Schedule } from "../engine/schedule/schedule.ts";
import { type Finding, finding } from "./finding.ts";

export function checkSchedule(row: Schedule | null): Finding[] {
  // It was removed since.
  if (row === null) return [];
  const { name, when, nextAt, queued, backfill, history } = row;
  const wrong = (message: string, ...evidence: readonly unknown[]) => finding("schedule-can-tick", name, message, ...evidence);
  const found: Finding[] = [];
  const ends = when.kind === "at" || (when.kind === "crons" && when.until !== null);
  if (!ends && nextAt === null) found.push(wrong("its rule has times and its next one is not known", when));
  if (queued.some((tick, at) => tick <= (queued[at - 1] ?? -1))) found.push(wrong("its ticks that wait are not in their order", queued));
  if (backfill !== null && backfill.started > backfill.total) found.push(wrong("its backfill has more runs than ticks", backfill));
  for (const tick of history)
    if ((tick.outcome === "started" || tick.outcome === "present") && tick.runId === null)
      found.push(wrong(`its tick ${new Date(tick.at).toISOString()} is ${tick.outcome} without a run`, tick));
  return found;
}
