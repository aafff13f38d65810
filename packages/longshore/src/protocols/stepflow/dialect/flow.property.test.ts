// Any flow executes the same steps and has the same result as in a simple reference model, for any outputs of its steps and any order.
// The reading below works out values on demand and remembers them; it knows nothing of plans.

import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { either, type FlowWorld, type Outcome, openFlows } from "../../../../test/support/flow-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { isRunOpen } from "../../../engine/run/run.ts";
import type { FlowResult } from "./result.ts";

interface MadeStep {
  input: Json;
  must: boolean;
  useDefault: boolean;
  outcome: Outcome;
}

interface Story {
  steps: MadeStep[];
  output: Json;
  sub: boolean;
}

const scalar = fc.constantFrom<Json>(null, false, true, 0, "", "x", [], { a: 1 });

/** An expression over the first `steps` steps. */
function expression(steps: number): fc.Arbitrary<Json> {
  const { value } = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, depthSize: "small", withCrossShrink: true },
      scalar,
      fc.constantFrom<Json>({ $input: "there" }, { $input: "missing" }, { $input: "$" }, { $literal: { $step: "s0" } }),
      steps === 0 ? scalar : fc.nat(steps - 1).map((at): Json => ({ $step: `s${at}` })),
      steps === 0 ? scalar : fc.nat(steps - 1).map((at): Json => ({ $step: `s${at}`, path: "a" })),
      fc
        .tuple(tie("value"), tie("value"), fc.option(tie("value"), { nil: undefined }))
        .map(([condition, yes, no]) => either(condition, yes, no)),
      fc.array(tie("value"), { maxLength: 3 }).map((values): Json => ({ $coalesce: values })),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.tuple(tie("value"), tie("value")).map(([a, b]): Json => ({ a, b })),
      fc.constantFrom("known", "unknown").chain((name) => tie("value").map((value): Json => ({ $variable: name, default: value }))),
    ),
  }));
  return value;
}

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 3, arbitrary: scalar.map((result): Outcome => ({ result })) },
  { weight: 1, arbitrary: fc.nat(99).map((number): Outcome => ({ error: { code: "WORKER_ERROR", message: `failure ${number}` } })) },
);

const story: fc.Arbitrary<Story> = fc.integer({ min: 0, max: 7 }).chain((size) =>
  fc.record({
    steps: fc.tuple(
      ...Array.from({ length: size }, (_, at) =>
        fc.record({
          input: expression(at),
          must: fc.integer({ min: 0, max: 4 }).map((drawn) => drawn === 0),
          useDefault: fc.boolean(),
          outcome,
        }),
      ),
    ),
    output: expression(size),
    sub: fc.boolean(),
  }),
);

const input = { there: "here" };
const variables = { known: "v" };

type Value = { value: Json } | { failed: string };

/** The plain reading. */
class Reading {
  readonly executed: string[] = [];
  readonly #story: Story;
  readonly #known = new Map<number, Value>();
  readonly #failedByThemselves = new Map<number, string>();

  constructor(told: Story) {
    this.#story = told;
  }

  run(): Value {
    this.#story.steps.forEach(({ must }, at) => {
      if (must) this.#step(at);
    });
    const output = this.#value(this.#story.output);
    const [first] = [...this.#failedByThemselves].sort(([a], [b]) => a - b);
    return this.#story.sub && "value" in output && first !== undefined ? { failed: first[1] } : output;
  }

  #step(at: number): Value {
    const seen = this.#known.get(at);
    if (seen !== undefined) return seen;
    const { input: given, outcome: told, useDefault } = this.#story.steps[at] as MadeStep;
    const worked = this.#value(given);
    let result = worked;
    if ("value" in worked) {
      this.executed.push(`s${at}`);
      result = "result" in told ? { value: told.result } : useDefault ? { value: "default" } : { failed: told.error.message };
      if ("failed" in result) this.#failedByThemselves.set(at, result.failed);
    }
    this.#known.set(at, result);
    return result;
  }

  #value(expression: Json): Value {
    if (typeof expression !== "object" || expression === null) return { value: expression };
    if (Array.isArray(expression)) {
      const items = expression.map((item) => this.#value(item));
      return items.find((item) => "failed" in item) ?? { value: items.map((item) => (item as { value: Json }).value) };
    }
    if ("$literal" in expression) return { value: expression.$literal as Json };
    if ("$if" in expression) {
      const condition = this.#value(expression.$if as Json);
      const truth = "value" in condition && condition.value !== null && condition.value !== false;
      return this.#value((truth ? expression.then : (expression.else ?? null)) as Json);
    }
    if ("$coalesce" in expression) {
      for (const option of expression.$coalesce as Json[]) {
        const value = this.#value(option);
        if ("failed" in value || value.value !== null) return value;
      }
      return { value: null };
    }
    if ("$step" in expression) {
      const result = this.#step(Number((expression.$step as string).slice(1)));
      if ("failed" in result || expression.path === undefined || result.value === null) return result;
      const object = result.value as JsonObject;
      return Object.hasOwn(Object(object), "a") ? { value: object.a as Json } : { failed: "expression" };
    }
    if ("$input" in expression)
      return expression.$input === "$" ? { value: input } : expression.$input === "there" ? { value: "here" } : { failed: "expression" };
    if ("$variable" in expression) return expression.$variable === "known" ? { value: "v" } : this.#value(expression.default as Json);
    const fields = Object.entries(expression).map(([key, field]) => [key, this.#value(field)] as const);
    const failed = fields.find(([, field]) => "failed" in field)?.[1];
    return failed ?? { value: Object.fromEntries(fields.map(([key, field]) => [key, (field as { value: Json }).value])) };
  }
}

function flowOf({ steps, output }: Story): JsonObject {
  return {
    steps: steps.map(({ input: given, must, useDefault }, at) => ({
      id: `s${at}`,
      component: `/mock/s${at}`,
      input: given,
      mustExecute: must,
      onError: (useDefault ? { action: "useDefault", defaultValue: "default" } : { action: "fail" }) as JsonObject,
    })),
    output,
  };
}

/** Reports on all open steps, in the order that `pick` draws, until the run has ended. */
async function play(world: FlowWorld, id: string, { steps }: Story, pick: () => number): Promise<string[]> {
  const executed: string[] = [];
  while (isRunOpen((await world.found(id)).state)) {
    const names = steps.map((_, at) => `s${at}`);
    const order = names.map((name) => ({ name, drawn: pick() })).sort((a, b) => a.drawn - b.drawn);
    let idle = true;
    for (const { name } of order) {
      const task = await world.claim(name);
      if (task === undefined) continue;
      idle = false;
      executed.push(name);
      await world.report(task, (steps[Number(name.slice(1))] as MadeStep).outcome);
      break;
    }
    assert(!idle, "the run is open, but no step is ready");
  }
  return executed;
}

function told(result: FlowResult | null): Value {
  assert(result !== null);
  if (result.outcome === "success") return { value: result.result };
  return { failed: result.error.code === "EXPRESSION_FAILURE" ? "expression" : result.error.message };
}

describe("any flow", () => {
  it("executes the steps and has the result of a plain reading of it", async () => {
    const world = await openFlows();
    await fc.assert(
      fc.asyncProperty(story, fc.infiniteStream(fc.nat(1_000)), async (made, stream) => {
        const reading = new Reading(made);
        const expected = reading.run();
        const id = await world.start(flowOf(made), input, { variables, ...(made.sub ? { sub: {} } : {}) });
        const executed = await play(world, id, made, () => stream.next().value as number);
        expect(executed.sort()).toEqual(reading.executed.sort());
        expect(told(await world.result(id))).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  it("has the result of a plain evaluation after a failure and a retry in which all succeed", async () => {
    const world = await openFlows();
    await fc.assert(
      fc.asyncProperty(story, fc.infiniteStream(fc.nat(1_000)), async (made, stream) => {
        const pick = () => stream.next().value as number;
        const id = await world.start(flowOf(made), input, { variables });
        await play(world, id, made, pick);
        if ((await world.result(id))?.outcome === "success") return;
        const mended = {
          ...made,
          sub: false,
          steps: made.steps.map((step) => ("error" in step.outcome ? { ...step, outcome: { result: "mended" } } : step)),
        };
        await world.runs.retry(id);
        await play(world, id, mended, pick);
        expect(told(await world.result(id))).toEqual(new Reading(mended).run());
      }),
      { numRuns: 200 },
    );
  });
});
