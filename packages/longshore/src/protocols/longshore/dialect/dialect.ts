// The dialect of workflows written in code: compiles the result of `graph()`, and resolves its references.

import { LongshoreError } from "../../../core/errors.ts";
import { isScalar, type Json, setOwn } from "../../../core/json/json.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import type { Dialect, Resolved, Scope } from "../../../engine/run/dialect.ts";
import { findCycle, makePlanInSlices, nodesMax, type Plan, type PlanNode, type Template } from "../../../engine/run/plan.ts";
import { WakeTime } from "./sleep.ts";
import { isWrapped, type Reference, referenceOf, references, type StepSource, type Value, type WorkflowSource } from "./source.ts";

export const codeDialect: Dialect = { name: "code", compile: (text) => atOnce(compileInSlices(text)), compileInSlices, resolve };

/** The crash of one worker is tolerated by default; a task that crashes several workers is not. */
const lostDefault = 2;

function* compileInSlices(text: string): Sliced<Plan> {
  const source = (yield* parseInSlices(text)) as WorkflowSource;
  if (source.steps.length > nodesMax)
    throw bad(`Workflow ${source.name} has ${source.steps.length} steps, at most ${nodesMax} are allowed.`, "steps");
  const index = new Map(source.steps.map((step, at) => [step.id, at]));
  const nodes = yield* mapInSlices(source.steps, (step) => nodeOf(source, step, index));
  const cycle = findCycle(nodes);
  if (cycle !== null) throw bad(`Workflow ${source.name} runs in a circle: ${cycle.join(" -> ")}.`, "steps");
  return yield* makePlanInSlices({ dialect: "code", nodes, output: source.output, timeoutMs: source.timeoutMs ?? null });
}

function nodeOf(source: WorkflowSource, step: StepSource, index: ReadonlyMap<string, number>): PlanNode {
  const wake = step.sleep === undefined ? undefined : new WakeTime(step.sleep);
  const used = [step.input, ...(step.when === undefined ? [] : [step.when]), ...(wake === undefined ? [] : [wake.value])].flatMap((value) =>
    references(value),
  );
  const find = (name: string) => {
    const at = index.get(name);
    if (at === undefined)
      throw bad(`Step ${step.id} of workflow ${source.name} refers to ${name}, which does not exist.`, `steps.${step.id}`);
    return at;
  };
  const results = used.flatMap((reference) => (reference.step === undefined ? [] : [find(reference.step)]));
  const after = [...results, ...(step.after ?? []).map(find)];
  const timeouts = { claimMs: step.claimMs, endMs: step.timeoutMs, totalMs: step.totalMs };
  const base = {
    id: step.id,
    input: step.input,
    when: step.when,
    after,
    ...(step.startWhen === undefined ? {} : { onFirstPart: streamsOf(source, step, after, results) }),
    waitsFor: step.always ? ("settled" as const) : ("done" as const),
    timeouts,
  };
  if (step.workflow !== undefined) return { ...base, kind: "run", workflow: step.workflow, resumes: true };
  if (wake !== undefined) return { ...base, kind: "wait", until: wake };
  return {
    ...base,
    kind: "task",
    lanes: [{ name: step.task ?? step.id, labels: [...new Set(step.labels ?? [])].sort() }],
    priority: step.priority ?? 0,
    retry: {
      failures: step.retry?.failures ?? 0,
      lost: step.retry?.lost ?? lostDefault,
      backoff: step.retry?.backoff ?? { kind: "exponential", delayMs: 1_000, maxMs: 60_000, jitter: 0.2 },
    },
    limits: step.limits ?? [],
  };
}

/** A step whose result is used must have ended; of the others a part is enough. */
function streamsOf(source: WorkflowSource, step: StepSource, after: readonly number[], results: readonly number[]): number[] {
  const used = new Set(results);
  const streams = [...new Set(after)].filter((at) => !used.has(at));
  if (step.startWhen === "first-part" && streams.length > 0) return streams;
  const where = `Step ${step.id} of workflow ${source.name}`;
  const expected = '"first-part", with steps in `after` whose results it does not use';
  const was =
    step.startWhen === "first-part"
      ? "waits for no step but those whose results it uses"
      : `has startWhen ${JSON.stringify(step.startWhen)}`;
  throw bad(`${where} ${was}, expected ${expected}.`, `steps.${step.id}.startWhen`);
}

function resolve(plan: Plan, template: Template, scope: Scope): Resolved {
  const needs: number[] = [];
  try {
    const value = fill(template instanceof WakeTime ? template.value : (template as Value), (reference) =>
      lookUp(plan, reference, scope, needs),
    );
    if (needs.length > 0) return { needs };
    if (!(template instanceof WakeTime)) return { value };
    const time = template.at(value, scope.now);
    return typeof time === "number" ? { value: time } : time;
  } catch (error) {
    if (error instanceof MissingValue) return { failed: error.message };
    throw error;
  }
}

class MissingValue extends Error {}

function fill(value: Value, find: (reference: Reference) => Json): Json {
  const reference = referenceOf(value);
  if (reference !== null) return find(reference);
  if (Array.isArray(value)) return value.map((item) => fill(item, find));
  if (isScalar(value)) return value;
  const parts = isWrapped(value) ? value.$value : value;
  const filled: { [key: string]: Json } = {};
  for (const key of Object.keys(parts)) setOwn(filled, key, fill(parts[key] as Value, find));
  return filled;
}

function lookUp(plan: Plan, reference: Reference, scope: Scope, needs: number[]): Json {
  let value: Json | undefined;
  if (reference.step === undefined) value = scope.input();
  else {
    const node = plan.index.get(reference.step) as number;
    value = scope.output(node);
    if (value === undefined) {
      needs.push(node);
      return null;
    }
  }
  // A step that was skipped or failed has no output; a step that starts nevertheless reads null all the way down.
  if (value === null) return null;
  const from = reference.step === undefined ? "the run's input" : `the output of step ${reference.step}`;
  reference.path.forEach((part, depth) => {
    const here = value as Json;
    const own = typeof here === "object" && here !== null && Object.hasOwn(here, part);
    if (!own) throw new MissingValue(`${from} has nothing at ${JSON.stringify(reference.path.slice(0, depth + 1).join("."))}`);
    value = (here as { [key: string]: Json })[part];
  });
  return value as Json;
}

function bad(message: string, field: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field } });
}
