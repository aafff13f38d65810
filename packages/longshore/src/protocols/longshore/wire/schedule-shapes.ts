// Schedules in requests and responses of our own API. Both have the same field names, so that a response can be sent back as a request.

import { z } from "zod";

const time = z.number().int();
const maybeTime = time.nullable();
const durationText = "milliseconds, or a text such as 30s, 5m, 2h or 1d";
const duration = z.union([z.number(), z.string().max(32)]);
const moment = z.union([z.number(), z.string().max(64)]);
const momentText = "epoch milliseconds, or a time with its offset, such as 2026-03-29T03:00:00+02:00";

/** The times of a schedule. One of `cron`, `every` and `at` is given. */
const timeFields = {
  cron: z.string().max(1_000).optional().describe("minute, hour, day of the month, month and day of the week, such as 30 3 * * 1-5"),
  timezone: z.string().max(100).optional().describe("the time zone of cron, such as Europe/Berlin; UTC when absent"),
  every: duration.optional().describe(durationText),
  anchor: moment.optional().describe(`one of the times of every: ${momentText}; 1970-01-01T00:00:00Z when absent`),
  at: moment.optional().describe(`the only time: ${momentText}`),
};

export const putBody = z.strictObject({
  workflow: z.string().min(1).max(200).describe("the name of a definition"),
  input: z.unknown().optional().describe("any JSON value; null when absent"),
  ...timeFields,
  tickField: z
    .string()
    .max(1_000)
    .optional()
    .describe("the field of the input that gets the time of the tick, such as 2026-03-29T01:00:00.000Z"),
  overlap: z.string().max(32).optional().describe("skip, queue, cancel-previous or allow; skip when absent"),
  queueMax: z.number().int().optional().describe("how many ticks wait at most, with overlap queue; 10 when absent"),
  catchUp: z.string().max(32).optional().describe("which ticks start after a downtime: last or all; last when absent"),
  catchUpWindow: duration.optional().describe(`how late a tick may start: ${durationText}; 1d when absent`),
  jitter: duration.optional().describe(`delays each tick by a time below this, always the same for a tick: ${durationText}; 0 when absent`),
});

export const tickShape = z
  .object({
    at: time.describe("The time of the tick, without jitter."),
    decidedAt: time,
    outcome: z
      .enum(["started", "present", "queued", "skipped", "missed", "failed"])
      .describe("`present`: a run with the key of this tick existed already; `missed`: no server was running at its time."),
    runId: z.string().nullable().describe("Its run. For `skipped` and `queued`: the open run that kept the tick from starting."),
    reason: z.string().nullable(),
    count: z.number().int().optional().describe("How many ticks were missed; not more than 100 are counted."),
    by: z.enum(["hand", "backfill"]).optional().describe("Absent for a tick at its time."),
  })
  .meta({ id: "Tick" });

const backfillShape = z
  .object({
    nextAt: maybeTime.describe("The tick that comes next; null when the last one has started."),
    to: time,
    overlap: z.enum(["queue", "allow"]),
    started: z.number().int(),
    total: z.number().int(),
  })
  .meta({ id: "Backfill" });

const scheduleFields = {
  name: z.string(),
  workflow: z.string(),
  source: z.string().nullable().describe("The workflow whose definition file contains this schedule; null when no file contains it."),
  input: z.unknown(),
  cron: z.string().optional(),
  timezone: z.string().optional(),
  every: z.number().int().optional().describe("Milliseconds."),
  anchor: time.optional(),
  at: time.optional(),
  tickField: z.string().optional(),
  overlap: z.enum(["skip", "queue", "cancel-previous", "allow"]),
  queueMax: z.number().int(),
  catchUp: z.enum(["last", "all"]),
  catchUpWindow: z.number().int().describe("Milliseconds."),
  jitter: z.number().int().describe("Milliseconds."),
  paused: z.string().nullable().describe("Why it is paused; null when it is not."),
  createdAt: time,
  updatedAt: time.describe("When its rules last changed."),
  nextAt: maybeTime.describe("The next tick; null when there is none."),
  dueAt: maybeTime.describe("When that tick starts its run: later by its jitter. Null while it is paused."),
  lastAt: maybeTime.describe("The last tick."),
  open: z.array(z.string()).describe("Runs that may still be open."),
  queued: z.array(time).describe("Ticks that wait for the end of a run."),
  backfill: backfillShape.nullable(),
  history: z.array(tickShape).describe("The last 20 ticks, newest first."),
};

export const scheduleShape = z.object(scheduleFields).meta({ id: "Schedule" });

const upcomingShape = z.object({ tick: time, dueAt: time }).meta({ id: "UpcomingTick" });

export const wholeScheduleShape = z
  .object({ ...scheduleFields, upcoming: z.array(upcomingShape).describe("The next ten ticks; none while it is paused.") })
  .meta({ id: "WholeSchedule" });
