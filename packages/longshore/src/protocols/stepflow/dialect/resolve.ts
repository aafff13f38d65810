// What is worked out while a run is open: the inputs of its steps, the branches of its choices, and its output.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import { Growth } from "../../../engine/run/growth.ts";
import type { Plan, Template } from "../../../engine/run/plan.ts";
import { type FlowTemplate, flowPlanOf, type Question, stepOf } from "./compile.ts";
import { type Evaluated, evaluate, isAbsent, isTrue, type Values, variableIn } from "./evaluate.ts";
import type { Step } from "./flow.ts";
import { errorOf, type FlowError, type FlowResult, failed, flowResultIn, orchestratorError, success } from "./result.ts";
import { settingsOf } from "./settings.ts";
import { standIn } from "./variables.ts";

/** Results that have been read, as long as their records are in use: what many steps read is parsed once. */
export type ResultCache = WeakMap<TaskRow, FlowResult>;

export function resolve(plan: Plan, template: Template, scope: Scope, cache: ResultCache): Resolved {
  const asked = template as FlowTemplate;
  if (asked.kind === "nothing") return { value: null };
  const values = new RunValues(plan, scope, cache);
  if (asked.kind === "choice") return choose(asked, values);
  const evaluated = evaluate(asked.expression, values);
  if (asked.kind === "output") return outputOf(plan, scope, evaluated);
  // The step is not executed: the mark shows that.
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

/** A run inside another fails with the first of its steps that failed by itself, whatever its output is. */
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

/** What has become of a step that has ended; for a step that has not, that it has no result yet. */
export function stepResult(step: Step, record: TaskRow): FlowResult {
  // A step that is skipped by order has the output that it was given.
  if (record.state === "done" || record.state === "skipped")
    return success(record.output === null ? null : (parseExact(record.output) as Json));
  if (record.state !== "failed" && record.state !== "cancelled") return failed(noResult(step.id));
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

  /** A run that was started without any still has the defaults of the flow's schema. */
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
