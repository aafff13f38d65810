// What the server and the worker of a durable function exchange. A *turn* is one call of the function's worker: it receives the results
// that have arrived since its last turn, continues the function until it waits again, and reports the commands that the function gave.
//
// The *journal* of a run is all its commands with their results. Command number n is node n of the run. Results are numbered in the order
// in which they arrived: the function receives them in this order each time it is replayed, so that it makes the same decisions.

import type { Backoff } from "./backoff.ts";
import { LongshoreError } from "./errors.ts";
import { isObject, type Json } from "./json/json.ts";

/** The kinds of commands. `local` and `version` have their result when they are reported; the others get it later. */
export type CommandKind = "step" | "run" | "sleep" | "signal" | "local" | "version";

const kinds: ReadonlySet<string> = new Set<CommandKind>(["step", "run", "sleep", "signal", "local", "version"]);

/** One thing that a function asks for. */
export interface Command {
  /** Its number in the run, from 1. */
  readonly node: number;
  readonly kind: CommandKind;
  /** The task, workflow, signal, side effect or change; empty for a sleep. */
  readonly name: string;
  /** How many results the function had received when it gave the command. */
  readonly after: number;
  /** The name that people see. Default: the name. */
  readonly shown?: string;
  readonly input?: Json;
  /** Of a sleep: when it ends, in milliseconds since 1970. */
  readonly until?: number;
  /** Of a sleep without `until`: how long it takes, from the moment when the server gets the command. */
  readonly forMs?: number;
  /** Of a `local` or `version` command: its result, or its error. */
  readonly output?: Json;
  readonly error?: string;
  /** The fields below mean the same as for a step of a graph. */
  readonly retry?: { readonly failures: number; readonly lost?: number; readonly backoff?: Backoff };
  readonly timeoutMs?: number;
  readonly totalMs?: number;
  readonly claimMs?: number;
  readonly priority?: number;
  readonly labels?: readonly string[];
  readonly limits?: readonly {
    readonly key: string;
    readonly held?: number;
    readonly rate?: { readonly count: number; readonly windowMs: number };
  }[];
}

/** The result of a command. */
export interface CommandResult {
  readonly node: number;
  /** Its number among the results. */
  readonly place: number;
  readonly state: "done" | "failed" | "cancelled";
  readonly at: number;
  /** Absent when the worker has it already, or when it is large: then the worker reads the journal. */
  readonly output?: Json;
  readonly error?: string;
  /** Whether its time was over. */
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
  /** The state that this turn continues, as the last report named it; null when every worker must replay the journal. */
  readonly by: string | null;
  /** Commands that the run has. */
  readonly commands: number;
  /** The first results after `after`. Those that are missing are in the journal. */
  readonly results: readonly CommandResult[];
  /** The input, the start and the number of this pass of the function: see `JournalPage`. Only in its first turn, and only if the input is small. */
  readonly input?: Json;
  readonly startedAt?: number;
  readonly pass?: number;
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

/** A page of a journal. */
export interface JournalPage {
  readonly runId?: string;
  /**
   * The input, the start and the number of this pass of the function: the first is 0, and `continueAs` and a restart begin the next. Only on
   * the first page, with `runId`.
   */
  readonly input?: Json;
  readonly startedAt?: number;
  readonly pass?: number;
  readonly entries: readonly JournalEntry[];
  /** The node behind which the next page starts; absent on the last page. */
  readonly next?: number;
}

/** The name of the question by which a worker reads a page of the journal. */
export const journalQuestion = "longshore.journal";
/** The name of the question by which a worker reports commands before the end of a turn. */
export const commandsQuestion = "longshore.commands";

/** Maximum number of commands in one report: each starts a task. A worker with more reports the rest in the next turn. */
export const commandsMax = 100;
/** Maximum number of commands in one life of a run: `continueAs` starts another life. */
export const journalMax = 20_000;

/** The prefix of lanes for functions. */
const lanePrefix = "function";
/** Lanes for functions: `function:<name>`, and `function.<worker>:<name>` for the worker that has the function in memory. */
export const functionLanes: RegExp = /^function[:.]/;

export function functionLane(name: string, worker?: string): string {
  return worker === undefined ? `${lanePrefix}:${name}` : `${lanePrefix}.${worker}:${name}`;
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
  const { by, commands, end, set, more } = report;
  if (typeof by !== "string" || !/^[\w.]{1,64}-\d{1,12}$/.test(by)) throw bad("by", by, "a worker and a number, such as x7f3-12");
  if (!Array.isArray(commands) || commands.length > commandsMax) throw bad("commands", commands, `a list of at most ${commandsMax}`);
  return {
    by,
    commands: commands.map((command, at) => readCommand(command, `commands[${at}]`)),
    ...(more === undefined ? {} : { more: more === true }),
    ...(set === undefined ? {} : { set: object(set, "set") as TurnReport["set"] & object }),
    ...(end === undefined ? {} : { end: readEnd(end) }),
  };
}

function readCommand(value: unknown, field: string): Command {
  const command = object(value, field);
  const { node, kind, name, after } = command;
  whole(node, `${field}.node`, 1);
  whole(after, `${field}.after`, 0);
  if (typeof kind !== "string" || !kinds.has(kind)) throw bad(`${field}.kind`, kind, [...kinds].join(", "));
  if (typeof name !== "string" || name.length > 200) throw bad(`${field}.name`, name, "a text of at most 200 characters");
  for (const text of ["shown", "error"])
    if (text in command && typeof command[text] !== "string") throw bad(`${field}.${text}`, command[text], "a text");
  if (typeof command.shown === "string" && command.shown.length > 250) throw bad(`${field}.shown`, command.shown, "at most 250 characters");
  for (const time of ["until", "forMs", "timeoutMs", "totalMs", "claimMs"])
    if (time in command) whole(command[time], `${field}.${time}`, 0);
  if ("priority" in command) whole(command.priority, `${field}.priority`, Number.MIN_SAFE_INTEGER);
  if ("labels" in command) texts(command.labels, `${field}.labels`);
  if ("retry" in command) readRetry(command.retry, `${field}.retry`);
  if ("limits" in command) readLimits(command.limits, `${field}.limits`);
  return command as unknown as Command;
}

function readRetry(value: unknown, field: string): void {
  const { failures, lost, backoff } = object(value, field);
  whole(failures, `${field}.failures`, 0);
  if (lost !== undefined) whole(lost, `${field}.lost`, 0);
  if (backoff === undefined) return;
  const { kind, delayMs } = object(backoff, `${field}.backoff`);
  if (typeof kind !== "string" || !["fixed", "linear", "exponential", "fibonacci"].includes(kind))
    throw bad(`${field}.backoff.kind`, kind, "fixed, linear, exponential or fibonacci");
  whole(delayMs, `${field}.backoff.delayMs`, 0);
}

function readLimits(value: unknown, field: string): void {
  if (!Array.isArray(value) || value.length > 20) throw bad(field, value, "a list of at most 20");
  value.forEach((limit, at) => {
    const { key, held, rate } = object(limit, `${field}[${at}]`);
    if (typeof key !== "string" || key.length > 200) throw bad(`${field}[${at}].key`, key, "a text of at most 200 characters");
    if (held !== undefined) whole(held, `${field}[${at}].held`, 1);
    if (rate === undefined) return;
    const { count, windowMs } = object(rate, `${field}[${at}].rate`);
    whole(count, `${field}[${at}].rate.count`, 1);
    whole(windowMs, `${field}[${at}].rate.windowMs`, 1);
  });
}

function readEnd(value: unknown): TurnEnd {
  const end = object(value, "end");
  if (end.kind === "done" || end.kind === "continued") return end as unknown as TurnEnd;
  if (end.kind !== "failed" && end.kind !== "blocked") throw bad("end.kind", end.kind, "done, failed, continued or blocked");
  if (typeof end.error !== "string") throw bad("end.error", end.error, "a text");
  if (end.kind === "failed" && end.node !== undefined) whole(end.node, "end.node", 1);
  return end as unknown as TurnEnd;
}

function object(value: unknown, field: string): { [key: string]: unknown } {
  if (!isObject(value)) throw bad(field, value, "an object");
  return value;
}

function whole(value: unknown, field: string, from: number): void {
  if (!Number.isSafeInteger(value) || (value as number) < from) throw bad(field, value, `a whole number from ${from}`);
}

function texts(value: unknown, field: string): void {
  if (!Array.isArray(value) || value.length > 100 || value.some((item) => typeof item !== "string" || item.length > 200))
    throw bad(field, value, "a list of at most 100 texts");
}

function bad(field: string, was: unknown, expected: string): LongshoreError {
  const shown = (JSON.stringify(was) ?? "absent").slice(0, 100);
  return new LongshoreError("LONGSHORE_BAD_OUTPUT", `${field} of a turn is ${shown}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
