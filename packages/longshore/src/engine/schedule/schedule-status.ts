// A schedule as clients see it.

import type { Schedule } from "./schedule.ts";
import { fireAt } from "./step.ts";

/** `parse` reads JSON texts of the row. */
export function scheduleStatus<Value>(row: Schedule, parse: (text: string) => Value) {
  const { backfill, nextAt } = row;
  const { name, workflow, source, overlap, queueMax, catchUp, paused, createdAt, updatedAt, lastAt, open, queued, history } = row;
  return {
    ...{ name, workflow, source, input: parse(row.input), ...timesOf(row) },
    ...(row.tickField === null ? {} : { tickField: row.tickField }),
    ...{ overlap, queueMax, catchUp, catchUpWindow: row.catchUpMs, jitter: row.jitterMs },
    ...{ paused, createdAt, updatedAt, nextAt, dueAt: nextAt === null || paused !== null ? null : fireAt(row, nextAt), lastAt },
    ...{ open, queued, history, backfill: backfill && backfillOf(backfill) },
  };
}

function timesOf({ when }: Schedule) {
  if (when.kind === "cron") return { cron: when.cron, timezone: when.timezone };
  // Only for display: such a schedule is changed by the protocol that made it.
  if (when.kind === "crons") return { cron: when.crons.map(({ cron }) => cron).join(" or "), timezone: when.crons[0]?.timezone ?? "UTC" };
  return when.kind === "every" ? { every: when.everyMs, anchor: when.anchor } : { at: when.at };
}

function backfillOf({ nextAt, to, overlap, started, total }: NonNullable<Schedule["backfill"]>) {
  return { nextAt: nextAt > to ? null : nextAt, to, overlap, started, total };
}
