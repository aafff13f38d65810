// The difference between two versions of a workflow: of their steps, and of their sources line by line.

import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { diffLines } from "../../../core/line-diff.ts";
import { inTurns, mapInSlices } from "../../../core/slices/slice-work.ts";
import { type Slices, turnRows } from "../../../core/slices/slices.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { planStep } from "./bodies.ts";

/** Longer texts are not indented and compared: parsing and writing one takes some milliseconds of the event loop. */
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
  return { steps: await stepDifference(slices, before.plan, after.plan), lines: await lineDifference(slices, before.source, after.source) };
}

async function lineDifference(slices: Slices, before: string, after: string) {
  const [old, young] = [await indentedSource(slices, before), await indentedSource(slices, after)];
  return old === null || young === null ? null : inTurns(diffLines(old.split("\n"), young.split("\n")), slices);
}

async function stepDifference(slices: Slices, before: Plan, after: Plan) {
  const [old, young] = [await shapesOf(slices, before), await shapesOf(slices, after)];
  return {
    added: [...young.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !young.has(id)),
    moved: [...young].filter(([id, shape]) => old.has(id) && old.get(id) !== shape).map(([id]) => id),
  };
}

/** What a step waits for, and where it is done, by its id. */
async function shapesOf(slices: Slices, plan: Plan): Promise<Map<string, string>> {
  const nodes = plan.nodes.filter(({ hidden }) => !hidden);
  const shapeOf = (node: PlanNode) => {
    const { id, after, startedBy, lane, labels, kind, workflow } = planStep(plan, node);
    return [id, JSON.stringify([after, startedBy, lane, labels, kind, workflow])] as const;
  };
  return new Map(await inTurns(mapInSlices(nodes, shapeOf), slices));
}
