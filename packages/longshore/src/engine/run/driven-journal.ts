// What the next life of a durable function keeps of its journal, computed in slices.
//
// A retry replays the function. The function must give the same commands as before up to the end of the journal. With another result it may
// give other commands. So a result is produced again only if all later commands are void. A restart and `continueAs` begin with an empty
// journal.

import type { Sliced } from "../../core/slices/slice-work.ts";
import type { Command, TurnReport } from "../../core/turn.ts";
import type { TaskRow } from "../board/task.ts";
import { backlogOf, type Run, type Step } from "./run.ts";

/**
 * `keep`: what the function did before the result of the command `from`; without `from`, every result. `empty`: nothing; results up to `sent`
 * were sent to the function.
 */
export type JournalChange =
  | { readonly kind: "keep"; readonly from: number | undefined }
  | { readonly kind: "empty"; readonly sent: number };

export interface NextJournal {
  /** The number of the last command that is kept, or given again. */
  readonly recorded: number;
  /** Commands whose records are void. */
  readonly void: readonly Step[];
  /** Those of them whose signals the function has not received: the next pass takes them. */
  readonly returned: readonly number[];
  /** Commands that succeeded while the run was paused, in their order. The run ended before their results got numbers. */
  readonly unnumbered: readonly number[];
  /** Side effects that were reported during that pause. */
  readonly unrecorded: readonly Command[];
}

type Records = ReadonlyMap<number, TaskRow>;

/** The record of the driver, which is no command. */
export const driverNode = 0;
/** Records that are visited without a pause: about a millisecond. */
const recordsAtOnce = 1_000;

/** A key that distinguishes changes of runs in different states. */
export function journalKey(change: JournalChange, { retries, recorded, backlog }: Run): string {
  return JSON.stringify([change, retries, recorded, backlog]);
}

export function nextJournal(records: Records, run: Run, change: JournalChange): Sliced<NextJournal> {
  return change.kind === "keep" ? keptJournal(records, run, change.from) : emptyJournal(records, change.sent);
}

/** A command that has failed is given again, unless the function has handled its failure and continued. Then it keeps its result. */
function* keptJournal(records: Records, run: Run, from: number | undefined): Sliced<NextJournal> {
  const end = (from === undefined ? 0 : records.get(from)?.ordinal) || Number.POSITIVE_INFINITY;
  const isBefore = (task: TaskRow) => task.node <= run.recorded && afterOf(task) < end;
  let recorded = 0;
  // The number of the last result that the function has handled.
  let handled = 0;
  yield* eachCommand(records, (task) => {
    if (!isBefore(task)) return;
    recorded = Math.max(recorded, task.node);
    handled = Math.max(handled, afterOf(task));
  });
  const unheard = sideEffectsOf(run).filter(({ after }) => after < end);
  for (const { after } of unheard) handled = Math.max(handled, after);
  const kept = new Set<number>();
  const voids: Step[] = [];
  const unnumbered: number[] = [];
  yield* eachCommand(records, (task) => {
    const { node, state, ordinal, attempt } = task;
    const isKept = isBefore(task) && node !== from && (state === "done" || (ordinal > 0 && ordinal <= handled));
    if (!isKept) voids.push([node, attempt]);
    else {
      kept.add(node);
      if (ordinal === 0) unnumbered.push(node);
    }
  });
  const unrecorded = unheard.filter(({ node }) => !kept.has(node));
  for (const { node } of unrecorded) recorded = Math.max(recorded, node);
  return { recorded, void: voids, returned: [], unnumbered: unnumbered.sort((a, b) => a - b), unrecorded };
}

function* emptyJournal(records: Records, sent: number): Sliced<NextJournal> {
  const voids: Step[] = [];
  const returned: number[] = [];
  yield* eachCommand(records, ({ node, attempt, signal, state, ordinal }) => {
    voids.push([node, attempt]);
    if (signal !== null && state === "done" && (ordinal === 0 || ordinal > sent)) returned.push(node);
  });
  return { recorded: 0, void: voids, returned, unnumbered: [], unrecorded: [] };
}

/** Visits the valid records of commands, in no order. */
function* eachCommand(records: Records, visit: (task: TaskRow) => void): Sliced<void> {
  let visited = 0;
  for (const [node, task] of records) {
    if (++visited % recordsAtOnce === 0) yield;
    if (node !== driverNode && task.state !== "forgotten") visit(task);
  }
}

/** How many results the function had received when it gave the command. */
function afterOf({ command }: Pick<TaskRow, "command">): number {
  return command === null ? 0 : Number.parseInt(command, 10) || 0;
}

/** Side effects in reports of turns that the run had not handled when it ended. */
function sideEffectsOf(run: Run): Command[] {
  const turns = backlogOf(run).filter(({ kind }) => kind === "turn") as { readonly report?: TurnReport }[];
  return turns.flatMap(({ report }) => report?.commands ?? []).filter(({ kind }) => kind === "local" || kind === "version");
}
