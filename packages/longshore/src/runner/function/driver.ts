// Runs the turns of durable functions on a worker. A turn is a call of an ordinary task (core/turn.ts). The functions that were used last
// stay in memory between their turns, so their turns carry only new results. All other functions are replayed from their journals.

import { randomBytes } from "node:crypto";
import type { Context } from "../../core/context.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";
import { task } from "../../core/task.ts";
import {
  type CommandResult,
  commandsMax,
  commandsQuestion,
  commandsSize,
  type ForeseenTurn,
  functionLane,
  type JournalEntry,
  type Turn,
  type TurnNews,
  type TurnReport,
} from "../../core/turn.ts";
import { stackOf } from "../stack.ts";
import { type DriverTask, foreseenCharsMax } from "./foreseen-turns.ts";
import { waitsElsewhere } from "./function-end.ts";
import { readJournal } from "./read-journal.ts";
import { FunctionReplay } from "./replay.ts";
import type { GoesOn } from "./replay-parts.ts";
import { type FunctionScope, makeScope, seededRandom } from "./scope.ts";
import type { Steady } from "./server-time.ts";
import type { ValueLimit } from "./value-limit.ts";

/** The code of a durable function. */
export interface FunctionCode {
  readonly name: string;
  readonly call: (w: FunctionScope, input: never) => unknown;
}

/** Functions that stay in memory between their turns. Each costs some kilobytes. */
const keptMax = 2_000;

/** The settings of a worker's functions. */
export interface DriverOptions {
  /** The size that a value of a command may have. */
  readonly limit?: ValueLimit | undefined;
  readonly steady?: Steady | undefined;
}

/** A function in memory. */
interface Kept {
  readonly replay: FunctionReplay;
  readonly abort: AbortController;
  /** The `by` of its last report. */
  by: string;
  /** The context of the turn in progress. */
  context: Context;
  /** Adds a line to the log of the run. */
  log: Context["log"];
  readonly code: FunctionCode;
  /** The server accepts turns that it has not handed out. */
  readonly isForeseen: boolean;
}

/**
 * The tasks of a worker for the turns of these functions. Each function has two: for the lane of all workers, and for the lane of this
 * worker.
 */
export function driverTasks(functions: readonly FunctionCode[], { limit, steady }: DriverOptions = {}): DriverTask[] {
  const worker = randomBytes(6).toString("hex");
  const kept = new Map<string, Kept>();
  let turns = 0;
  /** Functions that do what only a turn can do. */
  const unforeseen = new Set<FunctionCode>();
  const foresee: DriverTask["foresee"] = async (runId, { shown, since }, output) => {
    const state = kept.get(runId);
    if (state === undefined || !state.isForeseen || unforeseen.has(state.code)) return undefined;
    const text = JSON.stringify(output);
    const node = state.replay.soleStep(shown);
    if (node === undefined || text.length > foreseenCharsMax) return undefined;
    // From here on its memory is ahead of the server. If the server does not accept the report, this memory must not be used again.
    kept.delete(runId);
    const by = `${worker}-${++turns}`;
    // A copy: the function may change what it gets.
    const turn = await takeForeseen(state, { node, since, output: JSON.parse(text) as Json }, by);
    if (turn === undefined) {
      unforeseen.add(state.code);
      return undefined;
    }
    const accepted = () => {
      state.by = by;
      if (turn.report.end === undefined) keep(kept, runId, state);
    };
    return { turn, accepted };
  };
  return functions.flatMap((code) => {
    const handle = async (turn: Turn, context: Context): Promise<TurnReport> => {
      const by = `${worker}-${++turns}`;
      const { runId } = context.ids;
      const before = kept.get(runId);
      kept.delete(runId);
      const state = before !== undefined && before.by === turn.by ? before : undefined;
      const ready = state ?? (await replayed(code, turn, context, { limit, steady }));
      const { after, report } = await takeTurn(code, turn, context, ready, { by, isReplayed: state === undefined });
      if (report.end === undefined) keep(kept, runId, after);
      return report;
    };
    return [functionLane(code.name), functionLane(code.name, worker)].map((lane) => ({ ...task(lane, handle), foresee }));
  });
}

/** Undefined when the turn writes to the log or begins a side effect: only a turn that was handed out can do that. */
async function takeForeseen(
  state: Kept,
  result: { readonly node: number; readonly since: number; readonly output: Json },
  by: string,
): Promise<ForeseenTurn | undefined> {
  const { replay, log, by: from, code } = state;
  let isLogged = false;
  state.log = () => {
    isLogged = true;
  };
  const at = await replay.foresee(result);
  state.log = log;
  if (replay.end !== null) replay.dropUnreceived();
  const report: TurnReport = { ...reportOf(code, replay, by), received: replay.place };
  const isOf = report.end === undefined || report.end.kind === "done";
  return isOf && !isLogged && replay.strays === null ? { from, node: result.node, at, report } : undefined;
}

function keep(kept: Map<string, Kept>, runId: string, state: Kept): void {
  kept.set(runId, state);
  if (kept.size <= keptMax) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined) kept.delete(oldest);
}

async function takeTurn(
  code: FunctionCode,
  turn: Turn,
  context: Context,
  state: Kept,
  { by, isReplayed }: { readonly by: string; readonly isReplayed: boolean },
): Promise<{ after: Kept; report: TurnReport }> {
  state.context = context;
  state.by = by;
  const { replay, abort } = state;
  const stop = () => abort.abort(context.signal.reason);
  context.signal.addEventListener("abort", stop, { once: true });
  try {
    if (!isReplayed) await replay.receive(await newsOf(turn, context, replay));
    const { goesOn = false } = turn;
    const flush = () => reportCommands(replay, context, by, goesOn);
    await replay.settle(flush, goesOn);
    if (replay.end !== null) await reportReceived(replay, flush);
  } finally {
    context.signal.removeEventListener("abort", stop);
  }
  if (context.signal.aborted) throw context.signal.reason;
  if (replay.strays !== null)
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `The function ${code.name} cannot continue. ${replay.strays}`);
  const report = { ...reportOf(code, replay, by), ...(turn.goesOn ? { received: replay.place } : {}) };
  const stack = report.end?.kind === "failed" ? stackOf(replay.thrown) : undefined;
  if (stack !== undefined) context.log(stack, "stderr");
  return { after: state, report };
}

function reportOf(code: FunctionCode, replay: FunctionReplay, by: string): TurnReport {
  const set = replay.takeSet();
  const shown = set === undefined ? {} : { set };
  const { end } = replay;
  if (end !== null) return { by, commands: replay.takeCommands(commandsMax, commandsSize), ...shown, end };
  const commands = replay.takeCommands(commandsMax, commandsSize);
  if (!replay.isWaiting && commands.every(({ place }) => place !== undefined))
    return { by, commands, ...shown, end: { kind: "blocked", error: waitsElsewhere(code.name).message } };
  return { by, commands, ...shown, ...(replay.hasCommands || replay.isHeld ? { more: true } : {}) };
}

/** Reports commands in the middle of the turn. */
async function reportCommands(replay: FunctionReplay, context: Context, by: string, goesOn: boolean): Promise<GoesOn> {
  for (;;) {
    const after = replay.place;
    const set = goesOn ? replay.takeSet() : undefined;
    const shown = set === undefined ? {} : { set };
    const commands = replay.takeCommands(commandsMax, commandsSize);
    const report: TurnReport = { by, commands, ...shown, ...(goesOn ? { received: after } : {}) };
    const answer = await context.ask(commandsQuestion, report as unknown as Json);
    if (goesOn && isNews(answer)) {
      const { upTo, results, now, stop = false } = answer;
      return { results: await newsOf({ results, after, upTo }, context, replay), now, stop };
    }
    if (answer !== "ok")
      throw new LongshoreError(
        "LONGSHORE_LEASE_LOST",
        `The turn has ended: the reply to its commands is ${JSON.stringify(answer)}, expected "ok".`,
      );
    // The server gives no news, so the next turn brings the results.
    if (!replay.hasCommands) return { results: [], stop: true };
  }
}

/** Reports side effects that do not fit into the report of the end. */
async function reportReceived(replay: FunctionReplay, flush: () => Promise<GoesOn>): Promise<void> {
  replay.dropUnreceived();
  while (!replay.isFit(commandsMax, commandsSize)) await flush();
}

function isNews(answer: Json): answer is Json & TurnNews {
  return typeof answer === "object" && answer !== null && "upTo" in answer;
}

/** The results that a function in memory has not received. */
async function newsOf(
  { results, after, upTo }: Pick<Turn, "results" | "after" | "upTo">,
  context: Context,
  replay: FunctionReplay,
): Promise<readonly CommandResult[]> {
  const isWhole = results.length === upTo - after && results.every((result) => replay.knows(result));
  if (isWhole) return results;
  const { entries } = await readJournal(context);
  return resultsOf(entries, after, upTo);
}

/** The function at the point where this turn begins. */
async function replayed(code: FunctionCode, turn: Turn, context: Context, { limit, steady }: DriverOptions): Promise<Kept> {
  const { input, startedAt, pass } = turn;
  const isFirst = startedAt !== undefined && turn.commands === 0;
  const journal = isFirst ? { input, startedAt, pass, entries: [] } : await readJournal(context);
  const abort = new AbortController();
  const isEmpty = journal.entries.length === 0;
  const first = journal.entries.reduce((least, { result }) => Math.min(least, (result?.place ?? Number.POSITIVE_INFINITY) - 1), turn.after);
  const replay = new FunctionReplay({
    steady,
    input: journal.input ?? null,
    startedAt: journal.startedAt ?? 0,
    after: isEmpty ? turn.after : first,
    journal: new Map(journal.entries.map((entry) => [entry.node, entry])),
    limit,
  });
  const state: Kept = {
    ...{ replay, abort, by: "", context, code, isForeseen: turn.goesOn === true },
    log: (entry) => state.context.log(entry),
  };
  const scope = makeScope({
    runId: context.ids.runId,
    replay,
    random: seededRandom(`${context.ids.runId} ${journal.pass ?? 0}`),
    cancelled: abort.signal,
    log: (entry) => state.log(entry),
  });
  replay.isRepeating = turn.turn > 1;
  await replay.begin(() => code.call(scope, (journal.input ?? null) as never));
  await replay.receive(resultsOf(journal.entries, 0, turn.after));
  replay.isRepeating = false;
  const last = lastOf(journal.entries, turn);
  await replay.receive(resultsOf(journal.entries, turn.after, last));
  replay.skipTo(last);
  replay.checkJournal();
  return state;
}

/** A turn that is handed out again may have been continued: then the journal has results behind those of the turn. They have no gaps. */
function lastOf(entries: readonly JournalEntry[], { upTo, goesOn }: Turn): number {
  if (goesOn !== true) return upTo;
  const places = new Set(entries.map(({ result }) => result?.place));
  let last = upTo;
  while (places.has(last + 1)) last++;
  return last;
}

function resultsOf(entries: readonly JournalEntry[], after: number, upTo: number): CommandResult[] {
  return entries
    .flatMap(({ result }) => (result !== undefined && result.place > after && result.place <= upTo ? [result] : []))
    .sort((one, other) => one.place - other.place);
}
