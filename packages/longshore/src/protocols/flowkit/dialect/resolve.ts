// Computes the values of the templates in a FlowKit plan.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Plan, Template } from "../../../engine/run/plan.ts";
import { type Condition, holds } from "./condition.ts";
import type { Graph } from "./graph.ts";
import type { IsSensitive } from "./sensitive-values.ts";
import { changeVars, VarsError, type VarsFunction } from "./vars.ts";

export type FlowkitTemplate =
  | { kind: "literal"; value: JsonObject }
  | VarsTemplate
  | { kind: "when"; when: When }
  /** The output of a run: the aggregated metrics of its nodes. */
  | { kind: "result" };

/** The variables after a function has changed them, or the function's result. */
interface VarsTemplate {
  kind: "vars" | "vars-result";
  fn: VarsFunction;
  args: JsonObject;
}

/** Nodes are given by index. */
export type When =
  | { readonly never: true }
  /** One of `failed` failed, and all of `done` succeeded. */
  | { readonly failed: readonly number[]; readonly done: readonly number[] }
  | { readonly holds: Condition };

/** The graph's variables are one variable of the run under this name, because only a whole variable can be replaced. */
const varsName = "vars";

/** `coordinator.vars`: the variables of a run's graph. */
export function varsOf(variables: { readonly [name: string]: Json }): JsonObject {
  const vars = variables[varsName];
  return isObject(vars) ? (vars as JsonObject) : {};
}

export function resolve(plan: Plan, template: Template, scope: Scope, isSensitive: IsSensitive): Resolved {
  const given = template as FlowkitTemplate;
  switch (given.kind) {
    case "literal":
      return { value: given.value };
    case "vars":
    case "vars-result":
      return change(given, scope, isSensitive);
    case "when":
      return decide(given.when, scope);
    case "result":
      return resultOf(plan, scope);
  }
}

function change({ kind, fn, args }: VarsTemplate, scope: Scope, isSensitive: IsSensitive): Resolved {
  try {
    const { vars, result } = changeVars(fn, varsOf(scope.variables()), args, isSensitive);
    return { value: kind === "vars" ? { [varsName]: vars } : result };
  } catch (error) {
    if (error instanceof VarsError) return { failed: `${fn}: fn_args${error.field === "" ? "" : `.${error.field}`} ${error.message}` };
    throw error;
  }
}

function decide(when: When, scope: Scope): Resolved {
  if ("never" in when) return { value: false };
  if ("holds" in when) return { value: holds(when.holds, varsOf(scope.variables())) };
  const nodes = [...when.failed, ...when.done];
  const missing = nodes.filter((node) => scope.record(node) === undefined);
  if (missing.length > 0) return { needs: [], records: missing };
  const stateOf = (node: number) => scope.record(node)?.state;
  return { value: when.failed.some((node) => stateOf(node) === "failed") && when.done.every((node) => stateOf(node) === "done") };
}

/** `result.nodes` of the `tasks` document. The last aggregation of a node counts. */
function resultOf(plan: Plan, scope: Scope): Resolved {
  const { nodes } = plan.origin as Graph;
  const aggregating = nodes.flatMap(({ io: { fn } }, node) => (fn === "metrics.aggregate" ? [node] : []));
  const missing = aggregating.filter((node) => scope.output(node) === undefined);
  if (missing.length > 0) return { needs: missing };
  const stats = new Map<unknown, Json>();
  for (const node of aggregating) {
    const output = scope.output(node);
    if (isObject(output)) stats.set(nodes[node]?.io.fn_args?.node_id, (output as JsonObject).stats ?? {});
  }
  return { value: { nodes: nodes.map(({ node_id }) => ({ node_id, stats: stats.get(node_id) ?? {} })) } };
}
