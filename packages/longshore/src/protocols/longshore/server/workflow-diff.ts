// The difference between two versions of a workflow: of their steps, and of their sources line by line.

import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { diffLines } from "../../../core/line-diff.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import { type Slices, turnRows } from "../../../core/slices/slices.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { planSteps } from "./bodies.ts";

/** Longer texts are not indented and compared: to parse and write one holds the event loop for some milliseconds. */
const textCharsMax = 200_000;

/** The source as indented JSON; null when it is too long. */
export async function indentedSource(slices: Slices, source: string): Promise<string | null> {
  if (source.length > textCharsMax) return null;
  await slices.turn(turnRows);
  return writeExact(parseExact(source), 2);
}

interface Compared {
  readonly plan: Plan;
  readonly source: string;
}

export async function differenceOf(slices: Slices, before: Compared, after: Compared) {
  return { steps: stepDifference(before.plan, after.plan), lines: await lineDifference(slices, before.source, after.source) };
}

async function lineDifference(slices: Slices, before: string, after: string) {
  const [old, young] = [await indentedSource(slices, before), await indentedSource(slices, after)];
  return old === null || young === null ? null : inTurns(diffLines(old.split("\n"), young.split("\n")), slices);
}

function stepDifference(before: Plan, after: Plan) {
  const key = ({ after: waitsFor, startedBy, lane, labels, kind, workflow }: ReturnType<typeof planSteps>[number]) =>
    JSON.stringify([waitsFor, startedBy, lane, labels, kind, workflow]);
  const old = new Map(planSteps(before).map((step) => [step.id, key(step)]));
  const young = new Map(planSteps(after).map((step) => [step.id, key(step)]));
  return {
    added: [...young.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !young.has(id)),
    moved: [...young].filter(([id, shape]) => old.has(id) && old.get(id) !== shape).map(([id]) => id),
  };
}
