// Computes, while a run is open, the inputs of its steps, the branches of its choices, and its output.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { isCancelled, type TaskRow } from "../../../engine/board/task.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import { Growth } from "../../../engine/run/growth.ts";
import type { Plan, Template } from "../../../engine/run/plan.ts";
import { type FlowTemplate, flowPlanOf, type Question, stepOf } from "./compile.ts";
import { type Evaluated, evaluate, isAbsent, isTrue, type Values, variableIn } from "./evaluate.ts";
import type { Step } from "./flow.ts";
import { errorOf, type FlowError, type FlowResult, failed, flowResultIn, orchestratorError, success } from "./result.ts";
import { settingsOf } from "./settings.ts";
import { standIn } from "./variables.ts";

/** Parsed results of steps: a result that many steps read is parsed once. An entry lives as long as its record. */
export type ResultCache = WeakMap<TaskRow, FlowResult>;

export function resolve(plan: Plan, template: Template, scope: Scope, cache: ResultCache): Resolved {
  const flowTemplate = template as FlowTemplate;
  if (flowTemplate.kind === "nothing") return { value: null };
  const values = new RunValues(plan, scope, cache);
  if (flowTemplate.kind === "choice") return choose(flowTemplate, values);
  const evaluated = evaluate(flowTemplate.expression, values);
  if (flowTemplate.kind === "output") return outputOf(plan, scope, evaluated);
  // `inherited`: the step itself was not executed.
  return resolvedOf(evaluated, (error) => ({ ...failed(error), inherited: true }));
}

function resolvedOf(evaluated: Evaluated, shown: (error: FlowError) => FlowResult): Resolved {
  if ("value" in evaluated) return evaluated;
  if ("needs" in evaluated) return { needs: [], records: evaluated.needs };
  return { failed: evaluated.failed.message, output: shown(evaluated.failed) as unknown as Json };
}

function choose(question: Question, values: RunValues): Resolved {
  const answer =
    question.asks === "defined"
      ? values.variable(variableIn(question.variable) ?? "") !== undefined
      : question.asks === "true"
        ? isTrue(evaluate(question.expression, values))
        : opposite(isAbsent(evaluate(question.expression, values)));
  return typeof answer === "boolean" ? { value: answer ? "yes" : "no" } : { needs: [], records: answer.needs };
}

function opposite<Needs>(answer: boolean | Needs): boolean | Needs {
  return typeof answer === "boolean" ? !answer : answer;
}

/** A sub-run fails with the error of the first step that failed by itself. The output of the sub-run may have a value. */
function outputOf(plan: Plan, scope: Scope, evaluated: Evaluated): Resolved {
  const { run } = scope;
  if (!("value" in evaluated) || run.failed === 0 || !settingsOf(run).sub) return resolvedOf(evaluated, failed);
  const records = scope.records();
  if (records === undefined) return { needs: [], all: true };
  const nodes = [...records.keys()].sort((a, b) => a - b);
  for (const node of nodes) {
    const step = stepOf(plan.nodes[node]);
    const record = records.get(node) as TaskRow;
    if (step === undefined || flowResultIn(record.output)?.inherited) continue;
    const result = stepResult(step, record);
    if (result.outcome === "failed") return resolvedOf({ failed: result.error }, failed);
  }
  return resolvedOf(evaluated, failed);
}

/** The result of a step. A step that has not ended fails with "has no result". */
export function stepResult(step: Step, record: TaskRow): FlowResult {
  // A step that a user has skipped has the output that the user gave.
  if (record.state === "done" || record.state === "skipped")
    return success(record.output === null ? null : (parseExact(record.output) as Json));
  if (record.state !== "failed" && !isCancelled(record)) return failed(noResult(step.id));
  const own = !flowResultIn(record.output)?.inherited;
  return own && step.onError.action === "useDefault" ? success(step.onError.value) : failed(errorOf(record));
}

function noResult(id: string): FlowError {
  return orchestratorError("ORCHESTRATOR_ERROR", `step ${JSON.stringify(id)} has no result`);
}

class RunValues implements Values {
  readonly #plan: Plan;
  readonly #scope: Scope;
  readonly #cache: ResultCache;
  readonly #growth = new Growth();

  constructor(plan: Plan, scope: Scope, cache: ResultCache) {
    this.#plan = plan;
    this.#scope = scope;
    this.#cache = cache;
  }

  input(): Json {
    return this.#scope.input();
  }

  /** A variable that the start of the run did not set has the default of the flow's schema. */
  variable(name: string): Json | undefined {
    const given = this.#scope.variables();
    if (Object.hasOwn(given, name)) return given[name];
    const { flow, variables } = flowPlanOf(this.#plan);
    const declared = variables?.get(name);
    return declared === undefined ? undefined : standIn(declared, flow.schemas.defs);
  }

  variables(): JsonObject {
    return this.#scope.variables() as JsonObject;
  }

  took(value: Json): boolean {
    return this.#growth.took(value);
  }

  step(id: string): FlowResult | number {
    const node = this.#plan.index.get(id) as number;
    const record = this.#scope.record(node);
    if (record === undefined) return node;
    if (record === null) return failed(noResult(id));
    const known = this.#cache.get(record);
    if (known !== undefined) return known;
    const result = stepResult(stepOf(this.#plan.nodes[node]) as Step, record);
    this.#cache.set(record, result);
    return result;
  }
}
