// A simple reference model of graphs whose steps wait for others: which steps must have begun, given the records of the others. It does not
// use plans, counters and lives.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { Skips } from "../../src/engine/run/skips.ts";
import type { Random } from "../faults/random.ts";
import type { Known } from "./orders.ts";

/** The outcome of a step; `open` also before it has begun. */
export type Outcome = "open" | "done" | "failed" | "cancelled" | "skipped";
/** Whether a step begins, is skipped, or still waits for others. */
export type Turn = "begins" | "skipped" | "waits";

/** What a step may look at. */
export interface Before {
  outcome(step: string): Outcome;
  /** It has given a part, or has its result. */
  gives(step: string): boolean;
}

export interface ReadStep {
  readonly name: string;
  turn(before: Before): Turn;
  /** It is skipped when its turn has come, and not by an operator. */
  isOff?(before: Before): boolean;
  /** Its failure ends the run at once. */
  readonly ends?: boolean;
}

export function readingOf(steps: readonly ReadStep[], run: Run, records: ReadonlyMap<string, TaskRow>, known: Known): string | null {
  const skips = new Skips(run);
  const byName = new Map(steps.map((step) => [step.name, step]));
  const turns = new Map<string, Turn>();
  const turnOf = (name: string): Turn => {
    const step = byName.get(name) as ReadStep;
    const turn = turns.get(name) ?? step.turn(before);
    turns.set(name, turn);
    return turn === "begins" && !isOrdered(records.get(name)) && step.isOff?.(before) ? "skipped" : turn;
  };
  const isOrdered = (record: TaskRow | undefined) => record !== undefined && skips.has(record.node);
  const before: Before = {
    outcome(name) {
      const record = records.get(name);
      if (isOrdered(record)) return { begins: "done", skipped: "skipped", waits: "open" }[turnOf(name)] as Outcome;
      if (record === undefined) return "open";
      if (record.state === "done" || record.state === "skipped") return record.state;
      if (record.fault === null || (isOpen(record.state) && record.state !== "cancelling")) return "open";
      return record.state === "failed" ? "failed" : "cancelled";
    },
    gives(name) {
      const record = records.get(name);
      return before.outcome(name) === "done" || (record !== undefined && known.isStreamed(run, record));
    },
  };
  const faults: string[] = [];
  const outcomes = steps.map(({ name }) => before.outcome(name));
  const failed = steps.filter(({ name }) => ["failed", "cancelled"].includes(before.outcome(name)));
  const all = run.state === "running" || run.state === "succeeded" || (run.state === "failed" && !failed.some(({ ends }) => ends));
  for (const { name } of steps) {
    const record = records.get(name);
    const turn = turnOf(name);
    if (all && turn !== "waits" && record === undefined) faults.push(`${name} has not begun`);
    if (record === undefined || isOrdered(record) || known.isNamed(run, name)) continue;
    if (turn === "waits") faults.push(`${name} should not have begun`);
    if (all && turn === "skipped" && record.state !== "skipped") faults.push(`${name} is ${record.state}, and should be skipped`);
    if (all && turn === "begins" && record.state === "skipped") faults.push(`${name} is skipped, and should have begun`);
  }
  const settled = outcomes.every((outcome) => outcome !== "open");
  if (run.state === "running" && settled) faults.push("it should have ended");
  if (run.state === "succeeded" && (!settled || failed.length > 0)) faults.push("it should not have succeeded");
  if (run.state === "failed" && failed.length === 0) faults.push("it has failed, and none of its steps has");
  return faults.length === 0 ? null : faults.join(", ");
}

/** Waits for `needed` of these to be done, and is skipped when that cannot be any more. */
export function waitForDone(after: readonly string[], { outcome }: Before, needed: number = after.length): Turn {
  return waitFor(after, (step) => outcome(step) === "done", outcome, needed);
}

/** The same, where a part of some of them is enough. */
export function waitForParts(
  after: readonly string[],
  streams: readonly string[],
  { outcome, gives }: Before,
  needed = after.length,
): Turn {
  return waitFor(after, (step) => (streams.includes(step) ? gives(step) : outcome(step) === "done"), outcome, needed);
}

function waitFor(after: readonly string[], comes: (step: string) => boolean, outcome: Before["outcome"], needed: number): Turn {
  const came = after.filter(comes);
  if (came.length >= needed) return "begins";
  const lost = after.filter((step) => !came.includes(step) && outcome(step) !== "open");
  return after.length - lost.length < needed ? "skipped" : "waits";
}

/** Some of the steps before this one, by name. */
export function earlier(random: Random, at: number): string[] {
  return Array.from({ length: at }, (_, other) => `s${other}`).filter(() => random.chance(1.6 / (at + 1)));
}
