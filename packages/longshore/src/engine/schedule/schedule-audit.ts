// What the audit shows of a schedule: its rules without the input, whether it is paused, and its backfill.

import { type AuditValue, difference, type Ordered } from "../audit/audit.ts";
import type { Schedule } from "./schedule.ts";

/** An order that changes a schedule, makes one or removes it. */
export function scheduleOrder(verb: string, was: Schedule | null, became: Schedule | null): Ordered {
  const target = (became ?? was)?.name ?? "";
  const values =
    was === null || became === null
      ? { was: was && scheduleValue(was), became: became && scheduleValue(became) }
      : difference(scheduleValue(was), scheduleValue(became));
  return { verb, kind: "schedule", target, ...values, reason: was?.paused === became?.paused ? null : (became?.paused ?? null) };
}

function scheduleValue({ workflow, when, overlap, catchUp, jitterMs, input, paused, nextAt, backfill }: Schedule): AuditValue {
  return {
    ...{ workflow, when: JSON.stringify(when), overlap, catchUp, jitterMs, inputChars: input.length, paused, nextAt },
    backfill: backfill === null ? null : JSON.stringify(backfill),
  };
}
