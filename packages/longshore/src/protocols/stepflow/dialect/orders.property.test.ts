// Any flow has the same meaning under any operator commands (orders.ts). A simple reference model decides which steps begin, given the
// outcome of the others, and what the result is. The run must match it.

import { isDeepStrictEqual } from "node:util";
import { describe } from "vitest";
import type { Random } from "../../../../test/faults/random.ts";
import { either, mockRouter } from "../../../../test/support/flow-world.ts";
import { type Known, playOrders } from "../../../../test/support/orders.ts";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { isOpen, type TaskRow } from "../../../engine/board/task.ts";
import type { Run } from "../../../engine/run/run.ts";
import { Skips } from "../../../engine/run/skips.ts";
import { stepflowDialect } from "./dialect.ts";
import { failureReport, flowResultOf } from "./result.ts";
import { encodeFlow } from "./source.ts";
import { prepareRun } from "./start.ts";

const lanes = ["a", "b"];
const outputs: readonly Json[] = [null, true, false, { a: 1 }];

interface MadeStep {
  readonly id: string;
  readonly component: string;
  readonly input: Json;
  readonly mustExecute: boolean;
  readonly onError: { readonly action: string; readonly defaultValue?: Json; readonly maxRetries?: number };
}

/** An expression over the first `steps` steps. */
function makeValue(random: Random, steps: number, depth: number): Json {
  const drawn = random.next();
  const inner = () => makeValue(random, steps, depth - 1);
  if (depth === 0 || drawn < 0.4)
    return steps === 0 || random.chance(0.1) ? { $input: "go" } : { $step: `s${random.between(0, steps - 1)}` };
  if (drawn < 0.65) return [inner(), inner()];
  if (drawn < 0.8) return { $coalesce: [random.chance(0.5) ? null : inner(), inner(), inner()] };
  return either(random.chance(0.4) ? { $input: "go" } : inner(), inner(), inner());
}

function makeStep(random: Random, at: number): MadeStep {
  const actions = [{ action: "fail" }, { action: "useDefault", defaultValue: "d" }, { action: "retry", maxRetries: 1 }];
  return {
    id: `s${at}`,
    component: `/mock/${random.pick(lanes)}`,
    input: makeValue(random, at, 2),
    mustExecute: random.chance(0.15),
    onError: random.pick(actions) as MadeStep["onError"],
  };
}

/** A value that cannot be worked out yet is `open`. */
type Value = { value: Json } | "failed" | "open";

/** Works out values from records, and remembers which steps they want. */
class Reading {
  readonly wanted = new Set<string>();
  readonly #steps: readonly MadeStep[];
  readonly #outcome: (step: MadeStep, input: Value) => Value;

  constructor(steps: readonly MadeStep[], outcome: (step: MadeStep, input: Value) => Value) {
    this.#steps = steps;
    this.#outcome = outcome;
    for (const step of steps) if (step.mustExecute) this.want(step);
  }

  want(step: MadeStep): Value {
    this.wanted.add(step.id);
    return this.#outcome(step, this.value(step.input));
  }

  value(expression: Json): Value {
    if (typeof expression !== "object" || expression === null) return { value: expression };
    if (Array.isArray(expression)) {
      const items = expression.map((item) => this.value(item));
      if (items.includes("open")) return "open";
      return items.includes("failed") ? "failed" : { value: items.map((item) => (item as { value: Json }).value) };
    }
    if ("$input" in expression) return { value: true };
    if ("$step" in expression) return this.want(this.#steps.find(({ id }) => id === expression.$step) as MadeStep);
    if ("$coalesce" in expression) {
      for (const option of expression.$coalesce as Json[]) {
        const value = this.value(option);
        if (typeof value === "string" || value.value !== null) return value;
      }
      return { value: null };
    }
    const condition = this.value(expression.$if as Json);
    if (condition === "open") return "open";
    const isTrue = condition !== "failed" && condition.value !== null && condition.value !== false;
    return this.value((isTrue ? expression.then : expression.else) as Json);
  }
}

function faultIn(steps: readonly MadeStep[], output: Json, run: Run, records: ReadonlyMap<string, TaskRow>, known: Known): string | null {
  const skips = new Skips(run);
  const isOrdered = ({ node }: TaskRow) => skips.has(node);
  const outcome = ({ id, onError }: MadeStep, input: Value): Value => {
    const record = records.get(id);
    if (record === undefined || (isOrdered(record) && !skips.isReached(record.node))) return "open";
    if (record.state === "done" || isOrdered(record)) return { value: JSON.parse(record.output ?? "null") as Json };
    if (record.fault === null || (isOpen(record.state) && record.state !== "cancelling")) return "open";
    // A step that could not be executed has no default.
    return onError.action === "useDefault" && input !== "failed" ? { value: onError.defaultValue ?? null } : "failed";
  };
  const reading = new Reading(steps, outcome);
  const result = reading.value(output);
  const faults: string[] = [];
  const goesOn = run.state === "running" || run.state === "succeeded" || run.state === "failed";
  for (const { id, input } of steps) {
    const record = records.get(id);
    const begins = reading.wanted.has(id) && reading.value(input) !== "open";
    if (begins && goesOn && record === undefined) faults.push(`${id} has not begun`);
    // What has ended keeps its end, also when another life does not want it any more.
    const kept = record !== undefined && (record.state === "done" || record.fault !== null) && run.retries > 0;
    if (!begins && record !== undefined && !isOrdered(record) && !kept && !known.isNamed(run, id))
      faults.push(`${id} should not have begun`);
  }
  if (run.state === "succeeded" && (typeof result === "string" || !isDeepStrictEqual(JSON.parse(run.output ?? "null"), result.value)))
    faults.push(`its output is ${run.output}, and should be ${JSON.stringify(result)}`);
  if (run.state === "failed" && result !== "failed") faults.push(`it has failed, and its output is ${JSON.stringify(result)}`);
  if (run.state !== "cancelled" && run.state !== "running" && flowResultOf(run) === null) faults.push("it has no result");
  return faults.length === 0 ? null : faults.join(", ");
}

describe("under any operator commands", () => {
  playOrders("a flow means the same", { seeds: 120, found: [1404] }, async (random) => {
    const world = await openRunWorld({ dialects: [stepflowDialect(mockRouter)], sliceTasks: 1 });
    const steps = Array.from({ length: random.between(2, 7) }, (_, at) => makeStep(random, at));
    const output = makeValue(random, steps.length, 3);
    const flow = { name: "w", steps, output } as unknown as JsonObject;
    return {
      world,
      told: JSON.stringify(flow),
      lanes: lanes.map((name) => ({ name })),
      async begin() {
        const { definition, run } = prepareRun({ source: encodeFlow(flow), input: { go: true } });
        await world.runs.define(definition);
        for (let count = 0; count < 2; count++) await world.runs.begin(run);
      },
      faultIn: (run, records, known) => faultIn(steps, output, run, records, known),
      steps: () => steps.map(({ id }) => id),
      waits: () => false,
      output: () => JSON.stringify(random.pick(outputs)),
      failure: () =>
        failureReport({ code: random.pick(["COMPONENT_FAILED", "WORKER_ERROR", "TIMEOUT"] as const) ?? "TIMEOUT", message: "no" }),
    };
  });
});
