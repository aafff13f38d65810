// A schedule for people: its rule, its next times and its last ticks.

import { formatDuration } from "../core/duration.ts";
import type { Schedule, Tick, WholeSchedule } from "./api.ts";
import { jsonText } from "./print-json.ts";
import { fit, type Paint, type Style, table } from "./terminal.ts";
import { terminalZone, timeText } from "./time-text.ts";
import { zonedText } from "./zoned-time.ts";

const outcomeStyles: Readonly<Record<Tick["outcome"], Style>> = {
  started: "green",
  present: "green",
  queued: "yellow",
  skipped: "yellow",
  missed: "yellow",
  failed: "red",
};

export interface ScheduleFrame {
  readonly now: number;
  readonly width: number;
  readonly paint: Paint;
}

/** `0 3 * * * Europe/Berlin`, `every 5.0 m`, or the single time. */
function timesText({ cron, timezone, every, at }: Pick<Schedule, "cron" | "timezone" | "every" | "at">): string {
  if (cron !== undefined) return timezone === "UTC" ? cron : `${cron} ${timezone}`;
  if (every !== undefined) return `every ${intervalText(every)}`;
  return new Date(at ?? 0).toISOString();
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** As people write it: `90m`, `1d`. */
function intervalText(ms: number): string {
  const [unit, size] = units.find(([, one]) => ms % one === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

/** When a schedule that was made or resumed starts its next run. */
export function nextLine({ name, paused, dueAt }: Schedule): string {
  if (paused !== null) return `${name} is paused: ${paused}`;
  return dueAt === null
    ? `${name} never starts a run: its time has passed`
    : `${name} starts its next run at ${timeText(dueAt, Date.now())} (${terminalZone()})`;
}

/** The cells of a list. */
export function scheduleRow(schedule: Schedule, { now, paint }: Omit<ScheduleFrame, "width">): string[] {
  const { name, workflow, paused, dueAt, history } = schedule;
  const [last] = history;
  const next = paused === null ? (dueAt === null ? "never" : timeText(dueAt, now)) : paint("yellow", "paused");
  const became = last === undefined ? "" : `${paint(outcomeStyles[last.outcome], last.outcome)} ${timeText(last.at, now)}`;
  return [name, timesText(schedule), workflow, next, became, paused ?? last?.reason ?? ""];
}

export function scheduleLines(schedule: WholeSchedule, frame: ScheduleFrame): string[] {
  const { now, width, paint } = frame;
  const { name, workflow, source, input, overlap, queueMax, catchUp, catchUpWindow, jitter, tickField, paused, queued, backfill } =
    schedule;
  const line = (what: string, text: string) => fit(`  ${what.padEnd(12)}${text}`, width);
  const catches = `${catchUp === "last" ? "the last tick that was missed" : "all ticks that were missed"}, up to ${intervalText(catchUpWindow)} late`;
  const waits = queued.map((tick) => timeText(tick, now)).join(", ");
  return [
    `${paint("bold", name)}  ${timesText(schedule)}  ${paint("dim", "starts")} ${workflow}`,
    ...(paused === null ? [] : [paint("yellow", fit(`  paused: ${paused}`, width))]),
    ...(source === null ? [] : [line("defined by", `the definition of ${source}`)]),
    ...(input === null ? [] : [line("input", jsonText(input))]),
    ...(tickField === undefined ? [] : [line("tick", `its time is in the field ${tickField} of the input`)]),
    line("overlap", overlap === "queue" ? `queue, at most ${queueMax}` : overlap),
    line("catch-up", catches),
    ...(jitter === 0 ? [] : [line("jitter", `below ${intervalText(jitter)}`)]),
    ...(queued.length === 0 ? [] : [line("wait", waits)]),
    ...(backfill === null ? [] : [line("backfill", `${backfill.started} of ${backfill.total} started, ${backfill.overlap}`)]),
    ...section("next", upcomingLines(schedule, frame), paint),
    ...section("last ticks", tickLines(schedule, frame), paint),
  ];
}

function section(title: string, lines: readonly string[], paint: Paint): string[] {
  return lines.length === 0 ? [] : [paint("dim", title), ...lines.map((text) => `  ${text}`)];
}

/** The next ten times. */
export function upcomingLines(schedule: WholeSchedule, { now, width, paint }: ScheduleFrame): string[] {
  const { upcoming, paused, timezone, jitter } = schedule;
  if (paused !== null) return [`none while it is paused: ${fit(paused, width)}`];
  const rows = upcoming.map(({ tick, dueAt }) => [
    ...timeRow(tick, timezone, now),
    ...(jitter === 0 ? [] : [`+ ${formatDuration(dueAt - tick)}`]),
  ]);
  return rows.length === 0 ? ["none: its time has passed"] : table(timeHeadings(timezone, jitter > 0), rows, paint, width);
}

export function timeHeadings(zone: string | undefined, hasJitter = false): string[] {
  return [zone ?? "UTC", "UTC", "IN", ...(hasJitter ? ["JITTER"] : [])];
}

/** A time in the zone of the schedule, in UTC, and how far away it is. */
export function timeRow(at: number, zone: string | undefined, now: number): string[] {
  return [zonedText(at, zone ?? "UTC"), new Date(at).toISOString().replace(".000Z", "Z"), awayText(Math.max(0, at - now))];
}

const dayMs = 86_400_000;

function awayText(ms: number): string {
  return ms < 2 * dayMs ? formatDuration(ms) : `${Math.floor(ms / dayMs)} d ${Math.floor((ms % dayMs) / 3_600_000)} h`;
}

function tickLines({ history }: WholeSchedule, { now, width, paint }: ScheduleFrame): string[] {
  const rows = history.map(({ at, outcome, runId, reason, count, by }) => [
    timeText(at, now),
    `${paint(outcomeStyles[outcome], outcome)}${count === undefined || count === 1 ? "" : ` ${count}`}`,
    by === undefined ? "" : `by ${by}`,
    runId ?? "",
    reason ?? "",
  ]);
  return rows.length === 0 ? [] : table([`TICK (${terminalZone()})`, "BECAME", "", "RUN", ""], rows, paint, width);
}
