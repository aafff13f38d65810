// `longshore schedules`: lists schedules, and makes, shows, pauses, runs and removes one.

import { Command, Option } from "commander";
import { counted } from "../core/text.ts";
import { withoutAbsent } from "../core/without-absent.ts";
import type { Run, Schedule, WholeSchedule } from "./api.ts";
import { type Client, connect, Refusal } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { jsonOf } from "./json-argument.ts";
import { type ConnectionOptions, parseCount, withConnection, withExamples, withJson } from "./options.ts";
import { readList } from "./pages.ts";
import { printJson } from "./print-json.ts";
import { printList } from "./print-list.ts";
import { finish } from "./run.ts";
import { nextLine, type ScheduleFrame, scheduleLines, scheduleRow, timeHeadings, timeRow, upcomingLines } from "./schedule-lines.ts";
import { didYouMean } from "./suggestion.ts";
import { columnsOf, painter, printable, table } from "./terminal.ts";
import { terminalZone } from "./time-text.ts";

interface Flags extends ConnectionOptions {
  json?: boolean;
}

/** How many schedules are searched for a similar name. */
const searchedMax = 1_000;
const upcomingShown = 10;

export function schedulesCommand(): Command {
  const command = new Command("schedules")
    .description("list schedules, make, pause, run and remove them")
    .addCommand(listCommand(), { isDefault: true });
  for (const make of [showCommand, nextCommand, setCommand, pauseCommand, resumeCommand, runCommand, backfillCommand, removeCommand])
    command.addCommand(make());
  return withExamples(
    command,
    [
      ["longshore schedules", "each with its next time and the result of its last tick"],
      ['longshore schedules set nightly order --cron "0 3 * * *"', "a run of order each night"],
      ["longshore schedules show nightly", "its rules, next ten times and last ticks"],
      ['longshore schedules pause nightly --reason "holidays"', "nothing starts until it is resumed"],
      ["longshore schedules backfill nightly --from 2026-03-01", "starts a run for each past tick without a run"],
    ],
    "`longshore schedules COMMAND --help` explains each of them.",
  );
}

function listCommand(): Command {
  const command = withJson(
    withConnection(new Command("list").description("list schedules; without a command, `longshore schedules` does the same")),
  )
    .option("--workflow <name>", "only schedules of this workflow")
    .option("--limit <number>", "maximum number of results", parseCount, 100)
    .action(list);
  return withExamples(command, [["longshore schedules list --workflow order --json", "for a program"]]);
}

function list({ workflow, limit, ...flags }: Flags & { workflow?: string; limit: number }): Promise<void> {
  const now = Date.now();
  return printList<Schedule>(flags, {
    path: "/schedules",
    query: { workflow },
    limit,
    empty: 'There are no schedules. Try `longshore schedules set nightly WORKFLOW --cron "0 3 * * *"`.',
    columns: ["SCHEDULE", "TIMES", "WORKFLOW", `NEXT (${terminalZone()})`, "LAST", ""],
    row: (schedule, paint) => scheduleRow(schedule, { now, paint }),
  });
}

function showCommand(): Command {
  const command = named("show", "show one schedule: its rules, next ten times and last 20 ticks").action(
    async (name: string, flags: Flags) => {
      const schedule = await ask(flags, name, (client, path) => client.get<WholeSchedule>(path));
      print(flags, schedule, scheduleLines(schedule, frame()));
    },
  );
  return withExamples(command, [
    ["longshore schedules show nightly", "also why it is paused, and which ticks were missed"],
    ["longshore schedules show nightly --json", "for a program"],
  ]);
}

type TimeFlags = Partial<Record<"cron" | "timezone" | "every" | "anchor" | "at", string>>;

/** The options for the times of a schedule. */
function withTimes(command: Command): Command {
  return command
    .option("--cron <expression>", "minute, hour, day of the month, month, day of the week, such as '0 3 * * 1-5'")
    .option("--timezone <name>", "the time zone of --cron, such as Europe/Berlin. Default: UTC")
    .option("--every <duration>", "an interval, such as 5m; at least 1s")
    .option("--anchor <time>", "one of the times of --every. Default: 1970-01-01T00:00:00Z")
    .option("--at <time>", "a single time with its offset, such as 2026-12-24T18:00:00+01:00");
}

/** The times as the API takes them: a text of digits means milliseconds. */
function timesOf({ cron, timezone, ...rest }: TimeFlags): Record<string, string | number | undefined> {
  const { every, anchor, at } = rest;
  return { cron, timezone, every: numberIn(every), anchor: numberIn(anchor), at: numberIn(at) };
}

function numberIn(text: string | undefined): string | number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : text;
}

function nextCommand(): Command {
  const command = new Command("next")
    .description("print the next ten times of a schedule, or of times that you try out")
    .argument("[schedule]", "its name; leave it out to try --cron, --every or --at")
    .action(next);
  withTimes(withJson(withConnection(command)));
  return withExamples(command, [
    ["longshore schedules next nightly", "in its time zone and in UTC"],
    ["longshore schedules next --cron '30 2 * * *' --timezone Europe/Berlin", "stores nothing"],
  ]);
}

async function next(name: string | undefined, { json, on, token, ...times }: Flags & TimeFlags): Promise<void> {
  const flags = { on, token, json };
  if (name !== undefined) {
    const schedule = await ask(flags, name, (client, path) => client.get<WholeSchedule>(path));
    return print(flags, schedule.upcoming, upcomingLines(schedule, frame()));
  }
  const found = await connect(flags).get<{ times: number[] }>("/schedule-times", { ...timesOf(times), limit: upcomingShown });
  const { now, paint, width } = frame();
  const rows = found.times.map((at) => timeRow(at, times.timezone, now));
  print(flags, found, rows.length === 0 ? ["none: the time has passed"] : table(timeHeadings(times.timezone), rows, paint, width));
}

interface SetFlags extends Flags, TimeFlags {
  input?: string;
  tickField?: string;
  overlap?: string;
  queueMax?: number;
  catchUp?: string;
  catchUpWindow?: string;
  jitter?: string;
}

function setCommand(): Command {
  const command = named("set", "make a schedule, or give it other rules; it keeps its history and its pause")
    .argument("<workflow>", "the name of a defined workflow")
    .action(set);
  withTimes(command)
    .option("--input <json>", "the input of each run: JSON, @FILE for a file, - for standard input. Default: null")
    .option("--tick-field <name>", "the field of the input that gets the time of the tick")
    .addOption(overlapOption("what happens to a tick while a run of an earlier one is open. Default: skip"))
    .option("--queue-max <number>", "with --overlap queue, how many ticks wait at most. Default: 10", parseCount)
    .addOption(new Option("--catch-up <which>", "which ticks start after a downtime. Default: last").choices(["last", "all"]))
    .option("--catch-up-window <duration>", "how late a tick may start. Default: 1d")
    .option("--jitter <duration>", "delay each tick by a time below this. Default: 0");
  return withExamples(command, [
    ['longshore schedules set nightly order --cron "0 3 * * *" --timezone Europe/Berlin', "at 03:00 local time, in summer and in winter"],
    ["longshore schedules set poll fetch --every 5m --overlap skip --input '{\"page\":1}'", "omits a tick while a run is open"],
    ["longshore schedules set gift order --at 2026-12-24T18:00:00+01:00", "once"],
  ]);
}

async function set(name: string, workflow: string, given: SetFlags): Promise<void> {
  const { json, on, token, input, tickField, overlap, queueMax, catchUp, catchUpWindow, jitter, ...times } = given;
  const rules = { tickField, overlap, queueMax, catchUp, catchUpWindow: numberIn(catchUpWindow), jitter: numberIn(jitter) };
  const value = input === undefined ? (tickField === undefined ? null : {}) : jsonOf(input, "--input");
  const client = connect({ on, token });
  const body = withoutAbsent({ workflow, input: value, ...timesOf(times), ...rules });
  const schedule = await client.put<WholeSchedule>(pathOf(name), body);
  printNext({ json }, schedule);
}

function overlapOption(text: string): Option {
  return new Option("--overlap <rule>", text).choices(["skip", "queue", "cancel-previous", "allow"]);
}

function pauseCommand(): Command {
  const command = named("pause", "pause a schedule: until it is resumed, it starts nothing by itself")
    .requiredOption("--reason <text>", "why; shown with the schedule")
    .action(async (name: string, { reason, ...flags }: Flags & { reason: string }) => {
      const schedule = await ask(flags, name, (client, path) => client.post<WholeSchedule>(`${path}/pause`, { reason }));
      print(flags, schedule, [`${schedule.name} paused: ${schedule.paused}`]);
    });
  return withExamples(command, [['longshore schedules pause nightly --reason "the warehouse is closed"', "open runs continue"]]);
}

function resumeCommand(): Command {
  const command = named("resume", "resume a schedule with its first tick from now on").action(async (name: string, flags: Flags) => {
    printNext(flags, await ask(flags, name, (client, path) => client.post<WholeSchedule>(`${path}/resume`)));
  });
  return withExamples(command, [["longshore schedules resume nightly", "ticks of the pause are omitted; start them with backfill"]]);
}

interface RunFlags extends Flags {
  overlap?: string;
  follow?: boolean;
}

function runCommand(): Command {
  const command = named("run", "start a run of a schedule now, also while it is paused")
    .addOption(overlapOption("instead of the rule of the schedule"))
    .option("--follow", "show the run until it has ended")
    .action(async (name: string, { overlap, follow, ...flags }: RunFlags) => {
      const body = overlap === undefined ? {} : { overlap };
      const run = await ask(flags, name, (client, path) => client.post<Run>(`${path}/run`, body));
      if (follow) return finish(connect(flags), run.id, flags);
      print(flags, run, [run.id]);
    });
  return withExamples(command, [
    ["longshore schedules run nightly --follow", "prints the run's id, then its steps"],
    ["longshore schedules run nightly --overlap allow", "also while a run of the schedule is open"],
  ]);
}

interface BackfillFlags extends Flags {
  from?: string;
  to?: string;
  overlap: string;
  end?: boolean;
}

function backfillCommand(): Command {
  const command = named("backfill", "start the runs of past ticks, in their order; a tick that has a run gets no second run")
    .option("--from <time>", "the first time: a day in UTC, or a time with its offset")
    .option("--to <time>", "the last time. Default: now")
    .addOption(
      new Option("--overlap <rule>", "queue: each run starts after the end of the one before; allow: all at once")
        .choices(["queue", "allow"])
        .default("queue"),
    )
    .option("--end", "end a backfill early; its runs continue")
    .action(backfill);
  return withExamples(command, [
    ["longshore schedules backfill nightly --from 2026-03-01 --to 2026-03-08", "from 1 March, 00:00 UTC, to 8 March, 00:00 UTC"],
    ["longshore schedules backfill nightly --from 2026-03-01T03:00:00+01:00", "until now"],
    ["longshore schedules backfill nightly --end", "the backfill starts no more runs"],
  ]);
}

async function backfill(name: string, { from, to, overlap, end = false, ...flags }: BackfillFlags): Promise<void> {
  if (end === (from !== undefined))
    throw new CommandFailure(`backfill takes either --from TIME or --end, but ${end ? "both were" : "none was"} given.`);
  const schedule = end
    ? await ask(flags, name, (client, path) => client.delete<WholeSchedule>(`${path}/backfill`))
    : await ask(flags, name, (client, path) =>
        client.post<WholeSchedule>(`${path}/backfill`, { from: momentOf(from ?? ""), to: momentOf(to ?? String(Date.now())), overlap }),
      );
  const { total } = schedule?.backfill ?? { total: 0 };
  const line = end ? "has no backfill any more" : total === 0 ? "has no tick in this range" : `starts ${counted(total, "run")}, ${overlap}`;
  print(flags, schedule, [`${name} ${line}`]);
}

/** A day means its first moment in UTC. */
function momentOf(text: string): string | number | undefined {
  return /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : numberIn(text);
}

function removeCommand(): Command {
  const command = named("delete", "remove a schedule; its runs continue").action(async (name: string, flags: Flags) => {
    await ask(flags, name, (client, path) => client.delete(path));
    print(flags, { name, deleted: true }, [`${name} deleted`]);
  });
  return withExamples(command, [["longshore schedules delete nightly", "its history is gone too"]]);
}

function named(name: string, description: string): Command {
  return withJson(withConnection(new Command(name).description(description).argument("<schedule>", "its name")));
}

function pathOf(name: string): string {
  return `/schedules/${encodeURIComponent(name)}`;
}

/** Asks about one schedule; for an unknown name, the error names similar ones. */
async function ask<Answer>(flags: Flags, name: string, work: (client: Client, path: string) => Promise<Answer>): Promise<Answer> {
  const client = connect(flags);
  try {
    return await work(client, pathOf(name));
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    throw new Refusal(
      `${error.message} ${await suggestion(client, name)}`,
      error.status,
      error.code === undefined ? {} : { code: error.code },
    );
  }
}

/** Never rejects, because it only adds to another error. */
async function suggestion(client: Client, name: string): Promise<string> {
  const fallback = "`longshore schedules` lists what there is.";
  try {
    const { items } = await readList<Schedule>(client, { path: "/schedules", cursor: "after", limit: searchedMax });
    return (
      didYouMean(
        name,
        Array.from(items, (schedule) => schedule.name),
      ) ?? fallback
    );
  } catch {
    return fallback;
  }
}

function printNext(flags: { json?: boolean | undefined }, schedule: WholeSchedule): void {
  print(flags, schedule, [nextLine(schedule)]);
}

function print(flags: { json?: boolean | undefined }, value: unknown, lines: readonly string[]): void {
  if (flags.json) printJson(value);
  else process.stdout.write(lines.map((line) => `${printable(line)}\n`).join(""));
}

function frame(): ScheduleFrame {
  return { now: Date.now(), width: columnsOf(process.stdout), paint: painter(process.stdout) };
}
