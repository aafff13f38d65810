// Compiles a flow to a plan. Steps are the first nodes, in order, so a step and its node have the same number. An expression without
// choices needs the steps that it mentions, which are known from the start. For an expression that chooses between steps, the plan has
// hidden nodes:
//
// {$if: C, then: T, else: E}: a chooser waits for what C needs and then demands one of two branches. A branch waits for what T or E needs.
// The chosen branch leads to a merge, which represents the whole expression. {$coalesce: [A, B, C]}: a chooser for each value except the
// last. It demands the next value when its own value is null. {$variable: V, default: D}: a coalesce of two values, of which the first
// needs nothing.
//
// At the end the expression itself is evaluated, from the results of the steps.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { atOnce, eachInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { makePlanInSlices } from "../../../engine/run/make-plan.ts";
import { nodesMax, type Plan, type PlanNode } from "../../../engine/run/plan.ts";
import { fatalsInSlices } from "./diagnose-fatal.ts";
import type { Expression } from "./expression.ts";
import type { Flow, Step } from "./flow.ts";
import type { Path } from "./path.ts";
import { decodeInSlices, dialectName } from "./source.ts";
import { declaredVariables, type Variable } from "./variables.ts";
import { widthOf } from "./width.ts";

/** The templates of a plan, which `resolve` evaluates. */
export type FlowTemplate =
  | { readonly kind: "nothing" }
  | { readonly kind: "input"; readonly expression: Expression }
  | { readonly kind: "output"; readonly expression: Expression }
  /** The branch of a chooser: `yes` or `no`. */
  | ({ readonly kind: "choice" } & Question);

/** The question of a chooser: is a condition true, is a value there (not null), or is a variable defined? */
export type Question =
  | { readonly asks: "true" | "there"; readonly expression: Expression }
  | { readonly asks: "defined"; readonly variable: Path };

export interface FlowPlan {
  readonly flow: Flow;
  /** An upper bound for the number of steps in flight at once. */
  readonly width: number;
  /** Null when the flow declares no variables. */
  readonly variables: ReadonlyMap<string, Variable> | null;
}

export function flowPlanOf(plan: Plan): FlowPlan {
  return plan.origin as FlowPlan;
}

/** Undefined for a hidden node: it belongs to an expression and is not shown. */
export function stepOf(node: PlanNode | undefined): Step | undefined {
  return node?.origin as Step | undefined;
}

export function compileFlow(source: string): Plan {
  return atOnce(compileInSlices(source));
}

export function* compileInSlices(source: string): Sliced<Plan> {
  const flow = yield* decodeInSlices(source);
  yield;
  const [fatal] = yield* fatalsInSlices(flow);
  if (fatal !== undefined)
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", fatal.message, { detail: { field: fatal.path, expected: fatal.expected } });
  return yield* new Compiler(flow).compile();
}

/** The nodes that must settle before a value can be evaluated, and the nodes that must be demanded for that. */
interface Needs {
  readonly after: ReadonlySet<number>;
  readonly demands: ReadonlySet<number>;
}

const none: Needs = { after: new Set(), demands: new Set() };
const unplaced = { lanes: [], priority: 0, limits: [], retry: { failures: 0, lost: 0, backoff: { kind: "fixed" as const, delayMs: 0 } } };

/** The schema of the input, with the definitions that it refers to. */
function inputFormOf({ input, defs }: Flow["schemas"]): JsonSchema | undefined {
  if (!isObject(input)) return undefined;
  return Object.keys(defs).length === 0 ? { ...input } : { ...input, $defs: defs };
}

class Compiler {
  readonly #flow: Flow;
  readonly #index: ReadonlyMap<string, number>;
  readonly #nodes: PlanNode[] = [];
  #hidden = 0;

  constructor(flow: Flow) {
    this.#flow = flow;
    this.#index = new Map(flow.steps.map(({ id }, at) => [id, at]));
  }

  *compile(): Sliced<Plan> {
    const { steps, output } = this.#flow;
    // Hidden nodes come after all steps, so the first places are reserved for the steps.
    this.#nodes.length = steps.length;
    yield* eachInSlices(steps, (step, at) => {
      this.#nodes[at] = this.#step(step);
    });
    yield;
    const { demands } = this.#needs(output);
    const always = steps.flatMap(({ mustExecute }, at) => (mustExecute ? [at] : []));
    return yield* makePlanInSlices({
      dialect: dialectName,
      nodes: this.#nodes,
      output: { kind: "output", expression: output } satisfies FlowTemplate,
      wanted: [...new Set([...demands, ...always])],
      judgedByOutput: true,
      inputForm: inputFormOf(this.#flow.schemas),
      origin: {
        flow: this.#flow,
        width: widthOf(this.#nodes, steps.length),
        variables: declaredVariables(this.#flow.schemas),
      } satisfies FlowPlan,
    });
  }

  #step(step: Step): PlanNode {
    return {
      ...unplaced,
      kind: "task",
      id: step.id,
      input: { kind: "input", expression: step.input } satisfies FlowTemplate,
      ...edges(this.#needs(step.input)),
      waitsFor: "settled",
      timeouts: {},
      // The output decides whether the run fails. A step that needs this one fails with it.
      onFailure: "permit",
      placed: true,
      origin: step,
    };
  }

  #needs(expression: Expression): Needs {
    switch (expression.kind) {
      case "literal":
      case "input":
        return none;
      case "step": {
        const at = this.#index.get(expression.step) as number;
        return { after: new Set([at]), demands: new Set([at]) };
      }
      case "variable":
        return expression.default === null ? none : this.#unlessDefined(expression.path, this.#needs(expression.default));
      case "coalesce":
        return this.#firstThere(expression.values);
      case "if":
        return this.#either(expression);
      case "list":
        return union(expression.items.map((item) => this.#needs(item)));
      case "object":
        return union(expression.fields.map(([, field]) => this.#needs(field)));
    }
  }

  #either(expression: Expression & { kind: "if" }): Needs {
    const condition = this.#needs(expression.condition);
    const [yes, no] = [this.#needs(expression.yes), this.#needs(expression.no)];
    if (isNone(yes) && isNone(no)) return condition;
    const branches = [this.#branch(yes), this.#branch(no)] as const;
    const chooser = this.#chooser({ asks: "true", expression: expression.condition }, condition, branches);
    return this.#merge(chooser, branches);
  }

  #unlessDefined(variable: Path, needs: Needs): Needs {
    if (isNone(needs)) return none;
    const branches = [this.#branch(none), this.#branch(needs)] as const;
    return this.#merge(this.#chooser({ asks: "defined", variable }, none, branches), branches);
  }

  /** Values at the end that need no step get no nodes. */
  #firstThere(values: readonly Expression[]): Needs {
    const needs = values.map((value) => this.#needs(value));
    const last = needs.findLastIndex((each) => !isNone(each));
    if (last <= 0) return needs[0] ?? none;
    // Built from the end, because each chooser refers to the next one.
    let next = this.#branch(needs[last] as Needs);
    const ends = [next];
    for (let at = last - 1; at >= 0; at--) {
      const found = this.#branch(none);
      ends.push(found);
      next = this.#chooser({ asks: "there", expression: values[at] as Expression }, needs[at] as Needs, [found, next]);
    }
    return this.#merge(next, ends);
  }

  #branch(needs: Needs): number {
    return this.#hide({ ...edges(needs), waitsFor: "settled" });
  }

  #chooser(question: Question, needs: Needs, [yes, no]: readonly [number, number]): number {
    const choice = {
      by: { kind: "choice", ...question } satisfies FlowTemplate,
      cases: new Map([["yes", [yes]]]),
      otherwise: [no],
    };
    return this.#hide({ ...edges(needs), waitsFor: "settled", choice });
  }

  #merge(chooser: number, branches: readonly number[]): Needs {
    const merge = this.#hide({ after: branches, waitsFor: "any" });
    return { after: new Set([merge]), demands: new Set([chooser]) };
  }

  #hide(fields: Pick<PlanNode, "after" | "demands" | "waitsFor"> & { choice?: (PlanNode & { kind: "instant" })["choice"] }): number {
    if (this.#nodes.length >= nodesMax)
      throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `The flow has more than ${nodesMax} steps and choices between steps.`, {
        detail: { field: "steps", expected: `at most ${nodesMax}` },
      });
    const template = { kind: "nothing" } satisfies FlowTemplate;
    const worked = { input: template, output: template, timeouts: {} };
    return this.#nodes.push({ ...fields, ...worked, kind: "instant", id: this.#hiddenId(), hidden: true }) - 1;
  }

  #hiddenId(): string {
    let id = `~${++this.#hidden}`;
    while (this.#index.has(id)) id += "~";
    return id;
  }
}

function edges({ after, demands }: Needs): { after: number[]; demands: number[] } {
  return { after: [...after], demands: [...demands] };
}

function isNone({ after, demands }: Needs): boolean {
  return after.size === 0 && demands.size === 0;
}

function union(needs: readonly Needs[]): Needs {
  const full = needs.filter((need) => !isNone(need));
  if (full.length <= 1) return full[0] ?? none;
  const after = new Set<number>();
  const demands = new Set<number>();
  for (const need of full) {
    for (const at of need.after) after.add(at);
    for (const at of need.demands) demands.add(at);
  }
  return { after, demands };
}
