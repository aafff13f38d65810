// The rules for the journal of a durable function: what its commands and their results are, a replay must find again.

import { driverCommand } from "../engine/board/task.ts";
import type { RunHistory, TaskHistory } from "../engine/run/history.ts";
import { type Finding, finding } from "./finding.ts";

/** A command of the journal. */
interface Entry {
  readonly task: TaskHistory;
  readonly node: number;
  /** How many results the function had received when it gave the command. */
  readonly after: number;
  /** The number of its result; 0 without one. */
  readonly place: number;
}

/**
 * Records of an earlier life or pass are void: they are `forgotten`. Messages mark them in slices, so nothing is judged while a message
 * about the run waits.
 */
export function journalWhole(run: RunHistory): Finding[] {
  const { journal } = run;
  if (journal == null || run.messages.length > 0) return [];
  const entries = run.tasks.flatMap((task) => entryOf(run, task)).sort((one, other) => one.node - other.node);
  const wrong = (message: string, ...proof: readonly Entry[]) =>
    finding(
      "journal-whole",
      run.id,
      message,
      journal,
      ...proof.map(({ task: { id, state, command, place } }) => ({ id, state, command, place })),
    );
  return [...numbers(run, entries, wrong), ...order(entries, wrong), ...results(run, entries, wrong)];
}

type Wrong = (message: string, ...proof: readonly Entry[]) => Finding;

function entryOf({ id }: RunHistory, task: TaskHistory): Entry[] {
  const { command = null, place = 0, state } = task;
  if (command === null || command === driverCommand || state === "forgotten") return [];
  return [{ task, node: Number(task.id.slice(id.length + 1)), after: Number.parseInt(command, 10), place }];
}

/** While a turn is in progress, a side effect may be reported after commands that the function gave later. */
function numbers({ state, journal }: RunHistory, entries: readonly Entry[], wrong: Wrong): Finding[] {
  const last = entries.at(-1);
  if (journal == null || last === undefined) return [];
  if (last.node > journal.commands) return [wrong(`its command ${last.node} is stored and it counts ${journal.commands}`, last)];
  const isComplete = state === "running" && journal.waits;
  const gap = isComplete ? entries.findIndex(({ node }, at) => node !== at + 1) : -1;
  return gap < 0 ? [] : [wrong(`its command ${gap + 1} is missing`, entries[gap] as Entry)];
}

/** The function gives a command after the results before it. So a later command was given after as many results, or more. */
function order(entries: readonly Entry[], wrong: Wrong): Finding[] {
  for (const [at, later] of entries.slice(1).entries()) {
    const earlier = entries[at] as Entry;
    if (later.after < earlier.after)
      return [wrong(`its command ${later.node} was given before its command ${earlier.node}`, earlier, later)];
  }
  return [];
}

/** A paused run stores events for later, and a run that has ended numbers no results. */
function results({ journal, state, left = 0 }: RunHistory, entries: readonly Entry[], wrong: Wrong): Finding[] {
  const isNumbered = state === "running" && left === 0;
  const found: Finding[] = [];
  const byPlace = new Map<number, Entry>();
  const { place: newest, sent } = journal as NonNullable<RunHistory["journal"]>;
  if (sent > newest) found.push(wrong(`${sent} of its results were sent and it counts ${newest}`));
  for (const entry of entries) {
    const { place, after, node } = entry;
    if (place === 0) {
      if (isNumbered && entry.task.state === "done") found.push(wrong(`its command ${node} has a result without a number`, entry));
      continue;
    }
    const other = byPlace.get(place);
    byPlace.set(place, entry);
    if (other !== undefined) found.push(wrong(`its commands ${other.node} and ${node} both have the result ${place}`, other, entry));
    if (place > newest) found.push(wrong(`its command ${node} has the result ${place} and it counts ${newest}`, entry));
    if (place <= after) found.push(wrong(`its command ${node} has the result ${place} and was given after ${after} results`, entry));
  }
  return found;
}
