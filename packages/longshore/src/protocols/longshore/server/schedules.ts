// Schedules: reading, changing, pausing, running by hand, and backfills.

import { z } from "zod";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { overlaps } from "../../../core/start-limit.ts";
import { noSuchSchedule } from "../../../engine/schedule/no-such-schedule.ts";
import { timeOf } from "../../../engine/schedule/rules.ts";
import { type Schedule, upcomingShown } from "../../../engine/schedule/schedule.ts";
import { scheduleStatus } from "../../../engine/schedule/schedule-status.ts";
import type { ProtocolEngine } from "../../server-half.ts";
import { putBody, scheduleShape, wholeScheduleShape } from "../wire/schedule-shapes.ts";
import { apiPrefix, pageOf, runShape } from "../wire/shapes.ts";
import { runBody } from "./bodies.ts";
import { jsonPage } from "./json-page.ts";
import { json, type Operation, operation } from "./operation.ts";
import { limit } from "./query.ts";

const tag = "schedules";
const nameCharsMax = 200;
const scheduleNotFound = { 404: { description: "There is no such schedule." } };
const moment = z.union([z.number(), z.string().max(64)]);

const reasonBody = z.strictObject({ reason: z.string().min(1).max(1_000).describe("a text of 1 to 1000 characters: why it is paused") });
const runNowBody = z.strictObject({
  overlap: z
    .enum(overlaps)
    .optional()
    .describe(`one of ${overlaps.join(", ")}; that of the schedule when absent`),
});
const backfillBody = z.strictObject({
  from: moment.describe("the first time: epoch milliseconds, or a time with its offset"),
  to: moment.describe("the last time, not later than now"),
  overlap: z
    .enum(["queue", "allow"])
    .default("queue")
    .describe("queue: each run starts after the end of the one before; allow: all at once"),
});
const text = z.string().max(200).optional();
const previewQuery = z.strictObject({
  cron: text.describe("a cron expression"),
  timezone: text.describe("the time zone of cron; UTC when absent"),
  every: text.describe("an interval: milliseconds, or such as 5m"),
  anchor: text.describe("one of the times of every"),
  at: text.describe("a single time"),
  after: text.describe("epoch milliseconds, or a time with its offset; now when absent"),
  limit: limit.describe(`a whole number from 1 to 1000; 100 when absent`),
});
const previewShape = z.object({ times: z.array(z.number().int()).describe("The times, without jitter.") }).meta({ id: "Preview" });

type ScheduleDeps = Pick<ProtocolEngine, "schedules" | "reader" | "shown" | "clock" | "makeId">;

export function scheduleOperations({ schedules, reader, shown, clock, makeId }: ScheduleDeps): Operation[] {
  const whole = async (row: Schedule) => ({ ...scheduleBody(row), upcoming: await schedules.upcoming(row, upcomingShown) });
  const changed = async (name: string | undefined, change: (name: string) => Promise<Schedule | undefined>) =>
    json(200, await whole(known(name, await change(name as string))));
  return [
    operation({
      ...{ id: "listSchedules", tag, method: "GET", path: "/schedules", action: "schedule.read" },
      summary: "List schedules in the order of their names.",
      query: z.strictObject({
        limit,
        after: z.string().max(nameCharsMax).optional().describe("the `next` of the page before"),
        workflow: z.string().max(nameCharsMax).optional().describe("only schedules of this workflow"),
      }),
      answers: { 200: { description: "A page; it may be short and still have a next.", schema: pageOf(scheduleShape) } },
      async handle({ query }) {
        return jsonPage(reader, await schedules.list(query), scheduleBody);
      },
    }),
    operation({
      ...{ id: "getSchedule", tag, method: "GET", path: "/schedules/:name", action: "schedule.read" },
      summary: "Look at one schedule, with its next ten times.",
      answers: { 200: { description: "Its rules, position and last ticks.", schema: wholeScheduleShape }, ...scheduleNotFound },
      handle: ({ params }) => changed(params.name, (name) => schedules.get(name)),
    }),
    operation({
      ...{ id: "putSchedule", tag, method: "PUT", path: "/schedules/:name", action: "schedule.write" },
      summary: "Make a schedule, or replace its rules. It keeps its history and its pause, and its next tick unless its times change.",
      body: putBody,
      answers: {
        201: { description: "It has been made.", schema: wholeScheduleShape },
        200: { description: "It existed already; these are its rules now.", schema: wholeScheduleShape },
        404: { description: "There is no such workflow." },
        409: { description: "It belongs to a definition file." },
      },
      async handle({ params, body: { input, ...rules } }) {
        const name = params.name as string;
        const { schedule, created } = await schedules.put({ name, rules, input: writeExact(input ?? null) });
        const location = `${apiPrefix}/schedules/${encodeURIComponent(name)}`;
        return json(created ? 201 : 200, await whole(schedule), created ? { location } : {});
      },
    }),
    operation({
      ...{ id: "removeSchedule", tag, method: "DELETE", path: "/schedules/:name", action: "schedule.write" },
      summary: "Remove a schedule. Its runs continue.",
      answers: { 204: { description: "It was removed." }, ...scheduleNotFound },
      async handle({ params }) {
        if (!(await schedules.remove(params.name as string))) throw noSuchSchedule(params.name as string);
        return { status: 204 };
      },
    }),
    operation({
      ...{ id: "pauseSchedule", tag, method: "POST", path: "/schedules/:name/pause", action: "schedule.steer" },
      summary: "Pause a schedule: until it is resumed, it starts nothing by itself.",
      body: reasonBody,
      answers: { 200: { description: "The schedule afterwards.", schema: wholeScheduleShape }, ...scheduleNotFound },
      handle: ({ params, body }) => changed(params.name, (name) => schedules.pause(name, body.reason)),
    }),
    operation({
      ...{ id: "resumeSchedule", tag, method: "POST", path: "/schedules/:name/resume", action: "schedule.steer" },
      summary: "Resume a schedule with its first tick from now on. Ticks of the pause are left out.",
      answers: { 200: { description: "The schedule afterwards.", schema: wholeScheduleShape }, ...scheduleNotFound },
      handle: ({ params }) => changed(params.name, (name) => schedules.resume(name)),
    }),
    operation({
      ...{ id: "runSchedule", tag, method: "POST", path: "/schedules/:name/run", action: "schedule.steer" },
      summary: "Start a run of a schedule now, also while it is paused.",
      body: runNowBody,
      answers: {
        201: { description: "The run.", schema: runShape },
        409: { description: "A run is open, and the overlap rule forbids another one." },
        ...scheduleNotFound,
      },
      async handle({ params, body: { overlap } }) {
        const { run } = known(params.name, await schedules.run(params.name as string, { id: makeId(clock.now()), overlap }));
        return json(201, runBody(await shown.run(run)), { location: `${apiPrefix}/runs/${run.id}` });
      },
    }),
    operation({
      ...{ id: "backfillSchedule", tag, method: "POST", path: "/schedules/:name/backfill", action: "schedule.steer" },
      summary: "Start the runs of past ticks, in their order. A tick that has a run gets no second run.",
      body: backfillBody,
      answers: {
        202: { description: "The schedule, with its backfill; null when the range has no tick.", schema: wholeScheduleShape },
        409: { description: "It has a backfill in progress." },
        ...scheduleNotFound,
      },
      async handle({ params, body: { from, to, overlap } }) {
        const range = { from: timeOf(from, "from"), to: timeOf(to, "to"), overlap };
        return json(202, await whole(known(params.name, await schedules.backfill(params.name as string, range))));
      },
    }),
    operation({
      ...{ id: "endBackfill", tag, method: "DELETE", path: "/schedules/:name/backfill", action: "schedule.steer" },
      summary: "End a backfill early. The runs that it has started continue.",
      answers: { 200: { description: "The schedule afterwards.", schema: wholeScheduleShape }, ...scheduleNotFound },
      handle: ({ params }) => changed(params.name, (name) => schedules.endBackfill(name)),
    }),
    operation({
      ...{ id: "previewTimes", tag, method: "GET", path: "/schedule-times", action: "schedule.read" },
      summary: "Compute the times of rules that are not stored.",
      query: previewQuery,
      answers: { 200: { description: "The first times.", schema: previewShape } },
      async handle({ query: { after, limit: max, cron, timezone, ...times } }) {
        const from = after === undefined ? clock.now() : timeOf(numberIn(after), "after");
        const { every, anchor, at } = Object.fromEntries(Object.entries(times).map(([name, value]) => [name, value && numberIn(value)]));
        return json(200, { times: await schedules.preview({ workflow: "none", cron, timezone, every, anchor, at }, from, max) });
      },
    }),
  ];
}

/** A text of digits as a number; any other text unchanged. */
function numberIn(value: string): number | string {
  return /^\d+$/.test(value) ? Number(value) : value;
}

function known<T>(name: string | undefined, found: T | undefined): T {
  if (found === undefined) throw noSuchSchedule(name as string);
  return found;
}

function scheduleBody(row: Schedule) {
  return scheduleStatus(row, parseExact);
}
