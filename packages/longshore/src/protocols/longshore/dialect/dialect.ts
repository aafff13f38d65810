// The dialect of workflows written in code: compiles the result of `graph()`. template.ts resolves its references.

import { LongshoreError } from "../../../core/errors.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { shown } from "../../../core/text.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import { findCycle, makePlanInSlices } from "../../../engine/run/make-plan.ts";
import { nodesMax, type Plan, type PlanNode } from "../../../engine/run/plan.ts";
import { stepPlacement } from "../../../engine/run/step-placement.ts";
import { isSignalName, signalNameMax } from "../../../engine/signal/signal.ts";
import { explainItem, itemPlacement, listDefinition, listPlan, mapNode, mapReferences } from "./list.ts";
import { checkReported } from "./reported-definition.ts";
import { WakeTime } from "./sleep.ts";
import { type ListSource, references, type StepSource, type Value, type WorkflowSource } from "./source.ts";
import { resolve } from "./template.ts";

export const codeDialect: Dialect = {
  name: "code",
  compile: (text) => atOnce(compileInSlices(text)),
  compileInSlices,
  checkReported: (name, source) => checkReported("code", name, source),
  resolve,
  place: (plan, node, _input, scope) => ({ placement: itemPlacement(node, plan, scope) }),
  child: (_plan, node, run, input) => listDefinition(node, run, input),
  explain: explainItem,
};

function* compileInSlices(text: string): Sliced<Plan> {
  const source = (yield* parseInSlices(text)) as WorkflowSource | { list: ListSource };
  if ("list" in source) return yield* listPlan(source.list);
  if (source.steps.length > nodesMax)
    throw bad(`Workflow ${source.name} has ${source.steps.length} steps, at most ${nodesMax} are allowed.`, "steps");
  const index = new Map(source.steps.map((step, at) => [step.id, at]));
  const nodes = yield* mapInSlices(source.steps, (step) => nodeOf(source, step, index));
  const cycle = findCycle(nodes);
  if (cycle !== null) throw bad(`Workflow ${source.name} runs in a circle: ${cycle.join(" -> ")}.`, "steps");
  const { output, timeoutMs = null, inputSchema, events, debounce, limit } = source;
  return yield* makePlanInSlices({ dialect: "code", nodes, output, timeoutMs, inputSchema, events, debounce, limit });
}

function nodeOf(source: WorkflowSource, step: StepSource, index: ReadonlyMap<string, number>): PlanNode {
  const wake = step.sleep === undefined ? undefined : new WakeTime(step.sleep);
  const values: Value[] = [step.when, step.signal, wake?.value].filter((value) => value !== undefined);
  const used = [step.map === undefined ? references(step.input) : mapReferences(step), ...values.map((value) => references(value))].flat();
  if (used.some(({ item }) => item !== undefined))
    throw bad(`Step ${step.id} of workflow ${source.name} refers to an item of a list outside of the input of a map.`, `steps.${step.id}`);
  const find = (name: string) => {
    const at = index.get(name);
    if (at === undefined)
      throw bad(`Step ${step.id} of workflow ${source.name} refers to ${name}, which does not exist.`, `steps.${step.id}`);
    return at;
  };
  const results = used.flatMap((reference) => (reference.step === undefined ? [] : [find(reference.step)]));
  const after = [...results, ...(step.after ?? []).map(find)];
  const base = {
    id: step.id,
    input: step.input,
    when: step.when,
    after,
    ...(step.startWhen === undefined ? {} : { onFirstPart: streamsOf(source, step, after, results) }),
    waitsFor: step.always ? ("settled" as const) : ("done" as const),
    timeouts: { claimMs: step.claimMs, endMs: step.timeoutMs, totalMs: step.totalMs },
  };
  if (step.map !== undefined) return { ...base, timeouts: { totalMs: step.totalMs }, ...mapNode(step) };
  if (step.workflow !== undefined) return { ...base, kind: "run", workflow: step.workflow, resumes: true };
  if (wake !== undefined) return { ...base, kind: "wait", until: wake };
  if (step.signal !== undefined)
    return { ...base, kind: "wait", until: null, signal: signalOf(source, step, step.signal), schema: step.signalSchema };
  return { ...base, kind: "task", ...stepPlacement(step.task ?? step.id, step) };
}

/** A name that comes from data is checked only when the wait begins. */
function signalOf(source: WorkflowSource, step: StepSource, signal: Value): Value {
  if (isSignalName(signal) || (typeof signal === "object" && signal !== null)) return signal;
  throw bad(
    `Step ${step.id} of workflow ${source.name} waits for the signal ${shown(signal)}, expected a name of 1 to ${signalNameMax} characters.`,
    `steps.${step.id}.signal`,
  );
}

/** A step whose result is used must have ended. For other steps, the first part is enough. */
function streamsOf(source: WorkflowSource, step: StepSource, after: readonly number[], results: readonly number[]): number[] {
  const used = new Set(results);
  const streams = [...new Set(after)].filter((at) => !used.has(at));
  if (step.startWhen === "first-part" && streams.length > 0) return streams;
  const where = `Step ${step.id} of workflow ${source.name}`;
  const expected = '"first-part", with steps in `after` whose results it does not use';
  const was =
    step.startWhen === "first-part" ? "waits only for steps whose results it uses" : `has startWhen ${JSON.stringify(step.startWhen)}`;
  throw bad(`${where} ${was}, expected ${expected}.`, `steps.${step.id}.startWhen`);
}

function bad(message: string, field: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", message, { detail: { field } });
}
