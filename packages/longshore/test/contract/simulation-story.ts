// The workflows of a simulation: random ones in few lanes, with limits, deadlines, conditions and children.

import type { StartLimit } from "../../src/core/start-limit.ts";
import { laneOf } from "../../src/engine/board/lanes.ts";
import type { LimitKey } from "../../src/engine/board/limits.ts";
import type { NewTaskRow } from "../../src/engine/board/store.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import { codeDialect } from "../../src/protocols/longshore/dialect/dialect.ts";
import type { StepSource, WorkflowSource } from "../../src/protocols/longshore/dialect/source.ts";
import type { Random } from "../faults/random.ts";
import { flowDialect, makeFlow } from "./simulation-flows.ts";
import { tiedDialect } from "./tied-dialect.ts";
import { policy } from "./world.ts";

export const lanes: readonly string[] = ["a", "b", "c"];
export const label = "x";
export const termMs = 1_000;

const limits: readonly LimitKey[] = [
  { key: "one", held: 1 },
  { key: "two", held: 2 },
  { key: "pausing", held: 1, pausesClaim: true },
  { key: "rate", rate: { count: 2, windowMs: 500 } },
];

/** A workflow in one of the languages. */
export interface Workflow {
  readonly name: string;
  readonly dialect: Dialect;
  readonly source: string;
}

export function makeWorkflows(random: Random): Workflow[] {
  const inner = makeWorkflow(random, "inner", [1, 3], undefined);
  const inCode = [inner, makeWorkflow(random, "outer", [1, 6], "inner"), makeWorkflow(random, "other", [2, 7], "inner")];
  const tied = [strict(makeWorkflow(random, "knot", [1, 2], undefined)), makeTied(random)];
  const flow = { name: "flow", dialect: flowDialect, source: JSON.stringify(makeFlow(random, lanes)) };
  const inDialect = (dialect: Dialect) => (source: WorkflowSource) => ({ name: source.name, dialect, source: JSON.stringify(source) });
  const limited = { ...makeWorkflow(random, "limited", [1, 3], undefined), limit: makeLimit(random) };
  return [...[...inCode, limited].map(inDialect(codeDialect)), ...tied.map(inDialect(tiedDialect)), flow];
}

export function isTied(workflow: string): boolean {
  return workflow === "knot" || workflow === "tied";
}

/** Its runs are counted by the field of the input that has two values. */
function makeLimit(random: Random): StartLimit {
  const overlap = random.pick(["queue", "queue", "skip", "cancel-previous"] as const) as "queue";
  return { runs: random.between(1, 2), overlap, ...(random.chance(0.7) ? { key: "go" } : {}) };
}

/** Every step needs those before it, as in Conductor's definitions. */
function strict(source: WorkflowSource): WorkflowSource {
  return { ...source, steps: source.steps.map(({ always: _always, when: _when, ...step }) => step) };
}

/** Children at the same time and one after another: the end of one ends the others, and its next life starts them again. */
function makeTied(random: Random): WorkflowSource {
  const { steps, ...source } = strict(makeWorkflow(random, "tied", [1, 3], undefined));
  const children = Array.from({ length: random.between(1, 3) }, (_, at): StepSource => {
    const after = steps.filter(() => random.chance(0.3)).map(({ id }) => id);
    return { id: `k${at}`, workflow: "knot", input: null, after };
  });
  return { ...source, steps: [...steps, ...children] };
}

function makeWorkflow(random: Random, name: string, [low, high]: [number, number], child: string | undefined): WorkflowSource {
  const steps: StepSource[] = [];
  const count = random.between(low, high);
  for (let at = 0; at < count; at++) steps.push(makeStep(random, at, child));
  return { name, steps, output: null, ...(random.chance(0.1) ? { timeoutMs: random.between(2, 9) * 1_000 } : {}) };
}

function makeStep(random: Random, at: number, child: string | undefined): StepSource {
  const after = Array.from({ length: at }, (_, upstream) => `s${upstream}`).filter(() => random.chance(2 / (at + 1)));
  const path = random.chance(0.04) ? ["missing"] : [];
  const input = { results: after.map((id) => ({ $ref: { step: id, path } })) };
  const step: StepSource = { id: `s${at}`, input, after };
  if (random.chance(0.25)) step.always = true;
  if (random.chance(0.12)) step.when = { $ref: { path: ["go"] } };
  if (random.chance(0.08)) step.totalMs = random.between(1, 8) * 1_000;
  if (child !== undefined && random.chance(0.2)) return { ...step, workflow: child };
  const backoff = { kind: "fixed" as const, delayMs: random.pick([0, 50, 700]) as number };
  return {
    ...step,
    task: random.pick(lanes) as string,
    retry: { failures: random.between(0, 2), lost: random.between(0, 2), backoff },
    ...settings(random),
  };
}

function settings(random: Random): Partial<StepSource> {
  const made: Partial<StepSource> = {};
  if (random.chance(0.3)) made.limits = [random.pick(limits) as { key: string }];
  if (random.chance(0.05)) made.limits = limits.map((limit) => ({ ...limit }));
  if (random.chance(0.1)) made.timeoutMs = random.pick([600, 1_500]) as number;
  if (random.chance(0.06)) made.claimMs = random.between(1, 4) * 1_000;
  if (random.chance(0.2)) made.priority = random.between(-1, 1);
  if (random.chance(0.2)) made.labels = [label];
  return made;
}

export function makeTask(random: Random, id: string): NewTaskRow {
  return {
    id,
    step: "single",
    lanes: lanes
      .filter(() => random.chance(0.4))
      .map((name) => laneOf(name, random.chance(0.2) ? [label] : []))
      .concat(laneOf("a")),
    input: "null",
    policy: policy({ failures: random.between(0, 2), lost: random.between(0, 2), delayMs: random.pick([0, 300]) }),
    priority: random.between(-1, 1),
    ...(random.chance(0.3) ? { delayMs: random.pick([20, 900]) } : {}),
    ...(random.chance(0.4) ? { limits: [random.pick(limits) as LimitKey] } : {}),
    ...(random.chance(0.1) ? { endMs: 700 } : {}),
    ...(random.chance(0.1) ? { claimMs: 2_000 } : {}),
    ...(random.chance(0.1) ? { totalMs: 4_000 } : {}),
  };
}
