// What a retry of a durable function keeps of its journal. The function is replayed, and must give the same commands as before as far as the journal
// reaches. So a result may be given again only if all commands behind it are void: with another result, the function may give others.

import type { Command, TurnReport } from "../../core/turn.ts";
import type { TaskRow } from "../board/task.ts";
import { backlogOf, type Run } from "./run.ts";

export interface KeptJournal {
  /** The number of the last command that is kept, or given again. */
  readonly recorded: number;
  /** Commands whose records are void. */
  readonly void: readonly number[];
  /** Commands that have succeeded while the run was paused: it ended before their results got numbers. */
  readonly unnumbered: readonly number[];
  /** Side effects that were reported during that pause. */
  readonly unrecorded: readonly Command[];
}

/**
 * Keeps what the function did before the result of `from`. Without `from`, keeps every result. A command that has failed is given again, unless the function
 * has handled its failure and gone on: then it keeps its result.
 */
export function keptJournal(records: ReadonlyMap<number, TaskRow>, run: Run, from: number | undefined): KeptJournal {
  const end = (from === undefined ? 0 : records.get(from)?.ordinal) || Number.POSITIVE_INFINITY;
  const commands = [...records].filter(([node, { state }]) => node > 0 && state !== "forgotten").sort(([a], [b]) => a - b);
  const isBefore = ([node, task]: readonly [number, TaskRow]) => node <= run.recorded && afterOf(task) < end;
  const before = commands.filter(isBefore);
  const unheard = sideEffectsOf(run).filter(({ after }) => after < end);
  const handled = Math.max(0, ...before.map(([, task]) => afterOf(task)), ...unheard.map(({ after }) => after));
  const isKept = ([node, { state, ordinal }]: readonly [number, TaskRow]) =>
    node !== from && (state === "done" || (ordinal > 0 && ordinal <= handled));
  const kept = before.filter(isKept);
  const keptNodes = new Set(kept.map(([node]) => node));
  const unrecorded = unheard.filter(({ node }) => !keptNodes.has(node));
  return {
    recorded: Math.max(0, ...before.map(([node]) => node), ...unrecorded.map(({ node }) => node)),
    void: commands.filter(([node]) => !keptNodes.has(node)).map(([node]) => node),
    unnumbered: kept.filter(([, { ordinal }]) => ordinal === 0).map(([node]) => node),
    unrecorded,
  };
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
