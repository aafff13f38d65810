// Any workflow in code, with children and streams, has the same meaning under any operator commands (orders.ts).

import { describe } from "vitest";
import type { Random } from "../../../../test/faults/random.ts";
import { earlier, type ReadStep, readingOf, waitForParts } from "../../../../test/support/graph-reading.ts";
import { playOrders } from "../../../../test/support/orders.ts";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import type { Run } from "../../../engine/run/run.ts";
import { codeDialect } from "./dialect.ts";
import type { StepSource, WorkflowSource } from "./source.ts";

const lanes = ["a", "b"];

function makeStep(random: Random, at: number, child: string | undefined): StepSource {
  const after = earlier(random, at);
  const used = after.filter(() => random.chance(0.4));
  const step: StepSource = { id: `s${at}`, input: used.map((id) => ({ $ref: { step: id, path: [] } })), after };
  if (random.chance(0.25)) step.always = true;
  else if (used.length < after.length && random.chance(0.4)) step.startWhen = "first-part";
  if (child !== undefined && random.chance(0.1)) step.when = { $ref: { path: ["go"] } };
  if (random.chance(0.08)) step.totalMs = random.between(10, 90) * 1_000;
  if (child !== undefined && random.chance(0.25)) return { ...step, workflow: child };
  if (random.chance(0.1)) return { ...step, sleep: random.pick([{ for: 0 }, { for: 45_000 }, { until: 20_000 }]) };
  if (random.chance(0.15))
    return { ...step, map: { task: random.pick(lanes) as string, ...(random.chance(0.5) ? { concurrency: 1 } : {}) } };
  const backoff = { kind: "fixed" as const, delayMs: random.pick([0, 5_000]) as number };
  return {
    ...step,
    task: random.pick(lanes) as string,
    retry: { failures: random.between(0, 1), lost: random.between(0, 2), backoff },
    ...(random.chance(0.1) ? { timeoutMs: 20_000 } : {}),
    ...(random.chance(0.1) ? { claimMs: 50_000 } : {}),
    ...(random.chance(0.2) ? { labels: ["x"] } : {}),
    ...(random.chance(0.2) ? { limits: [{ key: "one", held: 1 }] } : {}),
  };
}

function makeWorkflow(random: Random, name: string, child?: string): WorkflowSource {
  const steps = Array.from({ length: random.between(2, 7) }, (_, at) => makeStep(random, at, child));
  return { name, steps, output: null, ...(random.chance(0.1) ? { timeoutMs: 300_000 } : {}) };
}

function read({ id, after = [], input, always, startWhen, when }: StepSource): ReadStep {
  const used = (input as { $ref: { step: string } }[]).map(({ $ref }) => $ref.step);
  const streams = startWhen === undefined ? [] : after.filter((step) => !used.includes(step));
  return {
    name: id,
    turn(before) {
      const waiting = always && after.some((step) => before.outcome(step) === "open");
      return always ? (waiting ? "waits" : "begins") : waitForParts(after, streams, before);
    },
    isOff: () => when !== undefined,
  };
}

/** The child run of a map: all its items begin at once, and the first failure ends it. */
function readItem(id: string): ReadStep {
  return { name: id, ends: true, turn: () => "begins" };
}

describe("under any operator commands", () => {
  playOrders("a workflow in code means the same", { seeds: 120 }, async (random) => {
    const world = await openRunWorld({ dialects: [codeDialect], sliceTasks: 1 });
    const sources = [makeWorkflow(random, "inner"), makeWorkflow(random, "outer", "inner")];
    const definitions = sources.map((source) => ({ name: source.name, dialect: "code", source: JSON.stringify(source) }));
    const readingsOf = (run: Run): ReadStep[] => {
      const source = sources.find(({ name }) => name === run.workflow);
      return source?.steps.map(read) ?? world.planOf(run).nodes.map(({ id }) => readItem(id));
    };
    return {
      world,
      told: JSON.stringify(sources),
      lanes: lanes.map((name) => ({ name, labels: ["x"] })),
      async begin() {
        for (const definition of definitions) await world.runs.define(definition);
        for (const { name } of sources.slice(1)) await world.runs.start({ workflow: name, input: '{"go":false}' });
      },
      faultIn: (run, records, known) => readingOf(readingsOf(run), run, records, known),
      steps: (run) => readingsOf(run).map(({ name }) => name),
      waits: () => false,
    };
  });
});
