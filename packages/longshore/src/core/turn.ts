// What the server and the worker of a durable function exchange. A *turn* is one call of the function's worker. It receives the results
// that have arrived since its last turn. It continues the function until it waits again, and reports the commands that the function gave.
//
// The *journal* of a run is all its commands with their results. Command number n is node n of the run. Results are numbered in the order
// in which they arrived. Each replay receives them in this order, so the function makes the same decisions.
//
// A turn can continue after a report: the worker reports commands in the middle of it, and the reply brings the news (`TurnNews`). So a
// side effect costs no turn of its own. When the function has no open command on the server, no other result can arrive. Then the worker
// itself numbers the result of a side effect (`Command.place`) and passes it to the function at once. The next side effect begins only
// after a report. So the result is in the journal before anything outside of the function can depend on it. All other commands, and the
// end, are in one report with the results before them. A report is stored in one transaction.

import { LongshoreError } from "./errors.ts";
import { isObject, type Json } from "./json/json.ts";
import { isName } from "./names.ts";
import {
  heldMax,
  labelCharsMax,
  labelsMax,
  limitKeyCharsMax,
  limitsMax,
  priorityMax,
  retriesMax,
  sleepMsMax,
  timeMax,
  waitMsMax,
} from "./step-bounds.ts";
import type { TaskStepSettings } from "./task-step.ts";
import type { ValueSize } from "./text-size.ts";
import type { CodeDefinition } from "./workflow-family.ts";

/** The kinds of commands. `local` and `version` have their result when they are reported; the others get it later. */
export type CommandKind = "step" | "run" | "sleep" | "signal" | "local" | "version";

const kinds: ReadonlySet<string> = new Set<CommandKind>(["step", "run", "sleep", "signal", "local", "version"]);

/** One thing that a function asks for. The fields of `TaskStepSettings` are for steps; a child run and a wait have only `totalMs`. */
export interface Command extends TaskStepSettings {
  /** The command's number in the run, from 1. */
  readonly node: number;
  readonly kind: CommandKind;
  /** The task, workflow, signal, side effect or change; empty for a sleep. */
  readonly name: string;
  /** How many results the function had received when it gave the command. */
  readonly after: number;
  /** The name that people see. Default: the name. */
  readonly shown?: string;
  readonly input?: Json;
  /** For a sleep: when it ends, in milliseconds since 1970. */
  readonly until?: number;
  /** For a sleep without `until`: how long it takes, from the moment when the server gets the command. */
  readonly forMs?: number;
  /**
   * For a child run: the definitions of the workflows that it runs, and its own as the last one. The server stores those that it does not
   * have.
   */
  readonly defines?: readonly CodeDefinition[];
  /** Of a `local` or `version` command: its result. */
  readonly output?: Json;
  /** Of a `local` command: its error. Of any other command: why the worker could not give it. Such a command has failed. */
  readonly error?: string;
  /** For a result that the function has received already: its number, and when the function received it. */
  readonly place?: number;
  readonly at?: number;
}

/** The result of a command, as the next turn brings it. */
export interface CommandResult {
  readonly node: number;
  /** The result's number among the results. */
  readonly place: number;
  readonly state: "done" | "failed" | "cancelled";
  readonly at: number;
  /** Absent when the worker has it already, or when it is large: then the worker reads the journal. */
  readonly output?: Json;
  readonly error?: string;
  /** Whether the command ended because its time was over. */
  readonly timedOut?: boolean;
  /** The number of its last attempt, from 1. */
  readonly attempt?: number;
}

/** What a worker receives for one turn. */
export interface Turn {
  /** The number of the turn, and the life of the run. */
  readonly turn: number;
  readonly life: number;
  /** Results up to `after` were received in earlier turns; this turn receives those up to `upTo`. */
  readonly after: number;
  readonly upTo: number;
  /** The name, from the last report, of the state that this turn continues. Null when every worker must replay the journal. */
  readonly by: string | null;
  /** Commands that the run has. */
  readonly commands: number;
  /** The first results after `after`. Those that are missing are in the journal. */
  readonly results: readonly CommandResult[];
  /**
   * The input, the start and the number of this pass of the function: see `JournalPage`. Only in its first turn, and only if the input is
   * small.
   */
  readonly input?: Json;
  readonly startedAt?: number;
  readonly pass?: number;
  /**
   * The server replies to commands in the middle of this turn with `TurnNews`, and accepts `received`, `Command.place` and `ForeseenTurn`.
   */
  readonly goesOn?: boolean;
}

/**
 * A turn that a worker takes before the server hands it out. The worker has done a step, and the function waits for nothing else. So the
 * worker sends the result of the step together with the report of the turn that this result brings. The server stores both in one
 * transaction, if it would hand out the same turn.
 */
export interface ForeseenTurn {
  /** The state that the turn continues, the command that the step is, and when the function received its result. */
  readonly from: string;
  readonly node: number;
  readonly at: number;
  readonly report: TurnReport;
}

/** The reply to commands in the middle of a turn, when the report names what the function has received. */
export interface TurnNews {
  /** The turn receives results up to this number. */
  readonly upTo: number;
  /** The first results after `received` of the report. Those that are missing are in the journal. */
  readonly results: readonly CommandResult[];
  /** The time of the server. */
  readonly now: number;
  /** The run is paused or blocked: the worker begins no other side effect, and reports the end of the turn. */
  readonly stop?: boolean;
}

/** How the function ended. `node`: the command whose error it threw. */
export type TurnEnd =
  | { readonly kind: "done"; readonly output: Json }
  | { readonly kind: "failed"; readonly error: string; readonly node?: number }
  | { readonly kind: "continued"; readonly input: Json }
  /** The code of the function does not match the journal: it gives other commands. */
  | { readonly kind: "blocked"; readonly error: string };

/** What a worker reports for one turn. */
export interface TurnReport {
  /** Names the state of the function in the memory of this worker: `<worker>-<number>`. */
  readonly by: string;
  readonly commands: readonly Command[];
  /** More commands follow: the next turn starts at once. */
  readonly more?: boolean;
  /** The number of the newest result that the function has received. */
  readonly received?: number;
  /** Values that the function shows to clients. */
  readonly set?: { readonly [key: string]: Json };
  readonly end?: TurnEnd;
}

/** One command of a journal that a worker reads, with its result if it has one. */
export interface JournalEntry {
  readonly node: number;
  /** Kind and name, as in `commandText`. */
  readonly command: string;
  readonly result?: CommandResult;
}

export interface JournalPage {
  readonly runId?: string;
  /**
   * The input, the start and the number of this pass of the function. The first pass is 0; `continueAs` and a restart begin the next. Only
   * on the first page, with `runId`.
   */
  readonly input?: Json;
  readonly startedAt?: number;
  readonly pass?: number;
  readonly entries: readonly JournalEntry[];
  /** The node after which the next page starts; absent on the last page. */
  readonly next?: number;
}

/** The name of the request (`ctx.ask`) with which a worker reads a page of the journal. */
export const journalQuestion = "longshore.journal";
/** The name of the request (`ctx.ask`) with which a worker reports commands before the end of a turn. */
export const commandsQuestion = "longshore.commands";

/** Maximum number of commands in one report: each may start a task. A worker that has more commands reports the others in the next turn. */
export const commandsMax = 100;
/**
 * When the values in a report have this size, the worker adds no further command to it. One command alone may be larger. By default a
 * request may have 2 MB, and JSON in UTF-8 can have three times as many bytes as characters.
 */
export const commandsSize: ValueSize = { chars: 524_288, values: 20_000 };
/**
 * Maximum number of definitions that come with a child run, and of characters in them. Above it, the worker sends none, and the child must
 * be defined already.
 */
export const definesMax = 50;
export const definesCharsMax = 65_536;
/** Maximum number of commands in one life of a run: `continueAs` starts another life. */
export const journalMax = 20_000;

/** Maximum characters of the name of a task, a workflow, a signal, a side effect or a change. */
const nameCharsMax = 200;
const shownCharsMax = 250;
/**
 * The maximum size of all names and values that a function shows. They are one text of the run, which is written again with each change. So
 * they are for a short status, and not for data.
 */
export const shownValuesMax: ValueSize = { chars: 262_144, values: 10_000 };

/** The prefix of lanes for functions. */
const lanePrefix = "function";
/** Lanes for functions: `function:<name>`, and `function.<worker>:<name>` for the worker that has the function in memory. */
export const functionLanes: RegExp = /^function[:.]/;

export function functionLane(name: string, worker?: string): string {
  return worker === undefined ? `${lanePrefix}:${name}` : `${lanePrefix}.${worker}:${name}`;
}

/** The function that takes its turns from a lane; undefined for lanes of other tasks. */
export function functionOfLane(lane: string): string | undefined {
  return functionLanes.test(lane) ? lane.slice(lane.indexOf(":") + 1) : undefined;
}

/** The worker that `by` of a report names. */
export function workerOf(by: string): string {
  return by.slice(0, by.lastIndexOf("-"));
}

/** How a command is stored and compared: `step price`, `sleep`. */
export function commandText({ kind, name }: Pick<Command, "kind" | "name">): string {
  return name === "" ? kind : `${kind} ${name}`;
}

/** Checks a report from a worker. Throws LONGSHORE_BAD_OUTPUT, which names the field. */
export function readReport(value: Json): TurnReport {
  const report = object(value, "the report");
  const { by, commands, end, set, more, received } = report;
  if (typeof by !== "string" || !/^[\w.]{1,64}-\d{1,12}$/.test(by)) throw bad("by", by, "a worker and a number, such as x7f3-12");
  if (!Array.isArray(commands) || commands.length > commandsMax) throw bad("commands", commands, `a list of at most ${commandsMax}`);
  if (received !== undefined) whole(received, "received", 0);
  const ending = end === undefined ? undefined : readEnd(end);
  // The run begins again with an empty journal, so such commands would be in no journal.
  if (ending?.kind === "continued" && commands.length > 0)
    throw bad("commands", commands, "an empty list, because the function continues as another");
  return {
    by,
    commands: commands.map((command, at) => readCommand(command, `commands[${at}]`)),
    ...(more === undefined ? {} : { more: more === true }),
    ...(received === undefined ? {} : { received: received as number }),
    ...(set === undefined ? {} : { set: object(set, "set") as TurnReport["set"] & object }),
    ...(ending === undefined ? {} : { end: ending }),
  };
}

function readCommand(value: unknown, field: string): Command {
  const command = object(value, field);
  const { node, kind, name, after } = command;
  whole(node, `${field}.node`, 1);
  whole(after, `${field}.after`, 0);
  if (typeof kind !== "string" || !kinds.has(kind)) throw bad(`${field}.kind`, kind, [...kinds].join(", "));
  text(name, `${field}.name`, nameCharsMax);
  if ("shown" in command) text(command.shown, `${field}.shown`, shownCharsMax);
  if ("error" in command && typeof command.error !== "string") throw bad(`${field}.error`, command.error, "a text");
  if ("place" in command) whole(command.place, `${field}.place`, 1);
  if ("at" in command) whole(command.at, `${field}.at`, 0, timeMax);
  if ("until" in command) whole(command.until, `${field}.until`, 0, timeMax);
  if ("forMs" in command) whole(command.forMs, `${field}.forMs`, 0, sleepMsMax);
  for (const time of ["timeoutMs", "totalMs", "claimMs"]) if (time in command) whole(command[time], `${field}.${time}`, 0, waitMsMax);
  if ("priority" in command) whole(command.priority, `${field}.priority`, -priorityMax, priorityMax);
  if ("labels" in command)
    list(command.labels, `${field}.labels`, labelsMax).forEach((label, at) => {
      text(label, `${field}.labels[${at}]`, labelCharsMax);
    });
  if ("defines" in command)
    list(command.defines, `${field}.defines`, definesMax).forEach((definition, at) => {
      readDefinition(definition, `${field}.defines[${at}]`);
    });
  if ("retry" in command) readRetry(command.retry, `${field}.retry`);
  if ("limits" in command)
    list(command.limits, `${field}.limits`, limitsMax).forEach((limit, at) => {
      readLimit(limit, `${field}.limits[${at}]`);
    });
  return command as unknown as Command;
}

function readDefinition(value: unknown, field: string): void {
  const { name, dialect, source } = object(value, field);
  text(name, `${field}.name`, nameCharsMax);
  text(dialect, `${field}.dialect`, nameCharsMax);
  text(source, `${field}.source`, definesCharsMax);
}

function readRetry(value: unknown, field: string): void {
  const { failures, lost, backoff } = object(value, field);
  whole(failures, `${field}.failures`, 0, retriesMax);
  if (lost !== undefined) whole(lost, `${field}.lost`, 0, retriesMax);
  if (backoff === undefined) return;
  const { kind, ...numbers } = object(backoff, `${field}.backoff`);
  if (typeof kind !== "string" || !["fixed", "linear", "exponential", "fibonacci"].includes(kind))
    throw bad(`${field}.backoff.kind`, kind, "fixed, linear, exponential or fibonacci");
  whole(numbers.delayMs, `${field}.backoff.delayMs`, 0, waitMsMax);
  for (const wait of ["maxMs", "jitterMs"]) if (wait in numbers) whole(numbers[wait], `${field}.backoff.${wait}`, 0, waitMsMax);
  if ("jitter" in numbers) inRange(numbers.jitter, `${field}.backoff.jitter`, 0, 1);
  if ("factor" in numbers) inRange(numbers.factor, `${field}.backoff.factor`, 1, 100);
}

function readLimit(value: unknown, field: string): void {
  const { key, held, rate } = object(value, field);
  text(key, `${field}.key`, limitKeyCharsMax);
  if (held !== undefined) whole(held, `${field}.held`, 1, heldMax);
  if (rate === undefined) return;
  const { count, windowMs } = object(rate, `${field}.rate`);
  whole(count, `${field}.rate.count`, 1, heldMax);
  whole(windowMs, `${field}.rate.windowMs`, 1, waitMsMax);
}

function readEnd(value: unknown): TurnEnd {
  const end = object(value, "end");
  if (end.kind === "done") return { kind: "done", output: (end.output ?? null) as Json };
  if (end.kind === "continued") return { kind: "continued", input: (end.input ?? null) as Json };
  if (end.kind !== "failed" && end.kind !== "blocked") throw bad("end.kind", end.kind, "done, failed, continued or blocked");
  if (typeof end.error !== "string") throw bad("end.error", end.error, "a text");
  if (end.kind === "failed" && end.node !== undefined) whole(end.node, "end.node", 1);
  return end as unknown as TurnEnd;
}

function object(value: unknown, field: string): { [key: string]: unknown } {
  if (!isObject(value)) throw bad(field, value, "an object");
  return value;
}

function list(value: unknown, field: string, most: number): unknown[] {
  if (!Array.isArray(value) || value.length > most) throw bad(field, value, `a list of at most ${most}`);
  return value;
}

/** A text that is kept as a name: the store must not change it. */
function text(value: unknown, field: string, charsMax: number): void {
  if (typeof value !== "string" || value.length > charsMax || !isName(value))
    throw bad(field, value, `a text of at most ${charsMax} characters, valid Unicode without the NUL character`);
}

function whole(value: unknown, field: string, from: number, to: number = Number.MAX_SAFE_INTEGER): void {
  if (!Number.isSafeInteger(value) || (value as number) < from || (value as number) > to)
    throw bad(field, value, `a whole number from ${from} to ${to}`);
}

function inRange(value: unknown, field: string, from: number, to: number): void {
  if (typeof value !== "number" || !(value >= from && value <= to)) throw bad(field, value, `a number from ${from} to ${to}`);
}

function bad(field: string, was: unknown, expected: string): LongshoreError {
  const shown = (JSON.stringify(was) ?? "absent").slice(0, 100);
  return new LongshoreError("LONGSHORE_BAD_OUTPUT", `${field} of a turn is ${shown}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
