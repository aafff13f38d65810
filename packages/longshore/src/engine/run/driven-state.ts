// The state of a durable function that the server stores between its turns, and the JSON texts that its workers receive.

import { isObject } from "../../core/json/json.ts";
import type { Turn } from "../../core/turn.ts";
import { cancelledAlone, type TaskRow } from "../board/task.ts";
import { type Closure, errorOf, faultOf } from "./retry.ts";
import type { Run } from "./run.ts";

/** Maximum characters of an output that is sent with a turn. The worker reads a larger one from the journal. */
const resultCharsMax = 16_384;

/** The state of the driver, stored in the settings of its run. */
export interface DriverState {
  /** Turns so far in this life. */
  turn: number;
  /** The number of the newest result. The next life continues to count from it. */
  place: number;
  /** Results up to this number were sent to a worker, with a turn or with the reply to commands. */
  sent: number;
  /** Whether no turn is queued or in progress: the next result queues one. */
  waiting: boolean;
  /** The nodes whose results come first after `sent`, in the order of the results. */
  news: number[];
  /** The state of the function that the next turn continues. */
  by: string | null;
  /** The number of the pass, from 0, and its start. Each pass begins with an empty journal. */
  pass?: number;
  startedAt?: number;
  /** Characters of all inputs and results of this pass, from 0. Those of attempts before a retry count too. */
  chars?: number;
  /** The command whose error ended the function. */
  failedAt?: number;
}

export interface Failing {
  state: "failed" | "cancelled";
  error: string | null;
  attempt: number;
  closure?: Closure;
}

/** The fields of JSON text with the beginning of this pass of the function. `state`: a newer state than the one in the row. */
export function beginningText(run: Run, { pass = 0, startedAt = run.createdAt }: Partial<DriverState> = stateOf(run)): string {
  return `"input":${run.input},"startedAt":${startedAt},"pass":${pass}`;
}

/** JSON text of a `TurnNews`. */
export function newsText({ upTo, now, results = [], stop = false }: NewsParts): string {
  return `{"upTo":${upTo},"now":${now},"results":[${results.join(",")}]${stop ? ',"stop":true' : ""}}`;
}

interface NewsParts {
  upTo: number;
  now: number;
  /** JSON texts. */
  results?: readonly string[];
  stop?: boolean;
}

/** The input of a turn that is handed out again. If the lost turn had already reported commands, the next worker must read the journal. */
export function turnAgain(run: Run, input: string): string {
  const { input: _input, ...turn } = JSON.parse(input) as Turn;
  if (turn.commands === run.recorded) return input;
  return JSON.stringify({ ...turn, upTo: stateOf(run).place, by: null, commands: run.recorded, results: [] } satisfies Turn);
}

export function failureText(node: number, place: number, at: number, { state, error, attempt, closure }: Failing): string {
  const timedOut = closure !== undefined && faultOf(closure) === "timed-out" ? { timedOut: true } : {};
  const text = error ?? (closure === undefined ? "cancelled" : errorOf(closure));
  return JSON.stringify({ node, place, state, at, error: text, attempt: attempt + 1, ...timedOut });
}

/** JSON text of the result of a command that has ended. Without its output when the output has more characters than the remaining room. */
export function resultText(task: TaskRow, place: number, now: number, room = Number.POSITIVE_INFINITY): string {
  const { node, state, output, error, fault, attempt, endedAt } = task;
  const at = endedAt ?? now;
  if (state !== "done") {
    const timedOut = fault === "timed-out" ? { timedOut: true } : {};
    const ending = state === "cancelled" || (state === "cancelling" && fault === cancelledAlone) ? "cancelled" : "failed";
    return JSON.stringify({ node, place, state: ending, at, error: error ?? "cancelled", attempt: attempt + 1, ...timedOut });
  }
  const isSmall = (output?.length ?? 0) <= Math.min(room, room === Number.POSITIVE_INFINITY ? room : resultCharsMax);
  return `{"node":${node},"place":${place},"state":"done","at":${at}${isSmall ? `,"output":${output ?? "null"}` : ""}}`;
}

/** Kind and name of the command that a task is; undefined for other tasks. */
export function commandOf({ command }: Pick<TaskRow, "command">): string | undefined {
  const space = command?.indexOf(" ") ?? -1;
  return space < 0 ? undefined : (command as string).slice(space + 1);
}

/** Whether the task is a command of this kind. */
export function isCommand(task: Pick<TaskRow, "command">, kind: string): boolean {
  const text = commandOf(task);
  return text !== undefined && (text === kind || text.startsWith(`${kind} `));
}

export function stateOf({ settings }: Pick<Run, "settings">): DriverState {
  return drivenState(settings) ?? { turn: 0, place: 0, sent: 0, waiting: false, news: [], by: null };
}

/** Undefined for the settings of other runs, and before the first turn. */
export function drivenState(settings: string | null): DriverState | undefined {
  const stored = settings === null ? null : (JSON.parse(settings) as unknown);
  return isObject(stored) && "turn" in stored ? (stored as unknown as DriverState) : undefined;
}
