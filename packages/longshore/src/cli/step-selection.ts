// Chooses the steps of a large run for a small screen: first those that failed, then those that run, then the others by their rank.

import type { Step } from "./api.ts";
import { isStuck } from "./manual-states.ts";

export interface Selection {
  /** In the order of the run. */
  readonly shown: readonly Step[];
  readonly left: readonly Step[];
}

/** `linesOf` is the number of lines that a step takes. At least one step is shown. */
export function selectSteps(steps: readonly Step[], linesMax: number, linesOf: (step: Step) => number): Selection {
  const ranked = steps.map((step, at) => ({ step, at, rank: rankOf(step) })).sort((a, b) => a.rank - b.rank || orderOf(a, b));
  const shown = new Set<Step>();
  let lines = 0;
  for (const { step } of ranked) {
    lines += linesOf(step);
    if (lines > linesMax && shown.size > 0) break;
    shown.add(step);
  }
  return { shown: steps.filter((step) => shown.has(step)), left: steps.filter((step) => !shown.has(step)) };
}

const ranks: Readonly<Record<Step["state"], number>> = {
  failed: 0,
  cancelled: 0,
  cancelling: 1,
  held: 1,
  offered: 3,
  queued: 3,
  sleeping: 3,
  awaiting: 3,
  done: 4,
  skipped: 5,
  waiting: 6,
};

/** A step that waits for a person comes before those that only wait for their turn. */
function rankOf(step: Step): number {
  const { waiting } = step;
  return waiting?.reason === "signal" || isStuck(waiting) ? 2 : ranks[step.state];
}

interface Ranked {
  readonly step: Step;
  readonly at: number;
}

/** Of the steps that are done, the last ones come first; of all others, the first ones. */
function orderOf(a: Ranked, b: Ranked): number {
  return a.step.state === "done" ? (b.step.endedAt ?? 0) - (a.step.endedAt ?? 0) : a.at - b.at;
}
