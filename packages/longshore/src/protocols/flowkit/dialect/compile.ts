// Compiles a graph to a plan. A worker's node is a task on the lane of its type. Functions for variables are instant nodes. Other
// coordinator functions are tasks on a lane that this server works on itself.

import type { JsonObject } from "../../../core/json/json.ts";
import { atOnce, mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import type { LimitKey } from "../../../engine/board/limits.ts";
import { findCycle, makePlanInSlices } from "../../../engine/run/make-plan.ts";
import type { OnFailure, Plan, PlanNode, RetryPolicy } from "../../../engine/run/plan.ts";
import { refusal } from "./fields.ts";
import { functionType, type Graph, type GraphNode } from "./graph.ts";
import type { FlowkitTemplate } from "./resolve.ts";
import { retryPolicyOf } from "./retry-policy.ts";
import { isVarsFunction } from "./vars.ts";
import { type Waits, waitsOf } from "./waits.ts";

export const dialectName = "flowkit";

/** The lane of the coordinator's functions, except the instant ones. */
export const functionLane = "flowkit-fn";

/** Maximum number of running nodes: of all types together, and of each type. */
export interface FlowkitLimits {
  readonly running?: number;
  readonly types?: { readonly [type: string]: number };
}

/** @throws LongshoreError LONGSHORE_BAD_DEFINITION for mistakes across nodes: unknown names, cycles, nodes that can never start. */
export function compileGraph(graph: Graph, limits: FlowkitLimits = {}, at: string = "graph"): Plan {
  return atOnce(planInSlices(graph, limits, at));
}

export function* planInSlices(graph: Graph, limits: FlowkitLimits = {}, at: string = "graph"): Sliced<Plan> {
  const index = indexOf(graph, at);
  const waits = yield* waitsOf(graph, index, at);
  const nodes = yield* mapInSlices(graph.nodes, (node, position) => nodeOf(node, waits[position] as Waits, limits));
  const cycle = findCycle(nodes);
  if (cycle !== null) throw refusal(`${at}.nodes`, `run in a circle: ${cycle.join(" -> ")}`);
  return yield* makePlanInSlices({ dialect: dialectName, nodes, output: { kind: "result" } satisfies FlowkitTemplate, origin: graph });
}

function indexOf(graph: Graph, at: string): Map<string, number> {
  const index = new Map<string, number>();
  graph.nodes.forEach(({ node_id }, position) => {
    const before = index.get(node_id);
    if (before !== undefined) {
      throw refusal(`${at}.nodes[${position}].node_id`, `is ${JSON.stringify(node_id)}, which nodes[${before}] is called already`);
    }
    index.set(node_id, position);
  });
  return index;
}

function nodeOf(node: GraphNode, waits: Waits, limits: FlowkitLimits): PlanNode {
  const { node_id: id, type, routing } = node;
  // With a route for failures, the run reaches that route before it fails.
  const onFailure: OnFailure = routing.on_failure.length > 0 ? "skip" : "end";
  const base = { id, ...waits, timeouts: {}, onFailure, origin: node };
  const { fn = "", fn_args = {} } = node.io;
  if (type !== functionType)
    return task({ ...base, input: literal(inputOf(node)) }, type, retryPolicyOf(node.retry_policy), limitsOf(type, limits));
  if (isVarsFunction(fn)) {
    const change = { fn, args: fn_args };
    const template = (kind: "vars-result" | "vars"): FlowkitTemplate => ({ kind, ...change });
    return { ...base, kind: "instant", input: literal({ fn, fn_args }), output: template("vars-result"), variables: template("vars") };
  }
  if (fn === "noop") return { ...base, kind: "instant", input: literal({ fn, fn_args }), output: literal({ ok: true }) };
  return task({ ...base, input: literal({ fn, fn_args: withTarget(id, fn_args) }) }, functionLane, retryPolicyOf(node.retry_policy), []);
}

function task(
  base: Pick<PlanNode, "id" | "input" | "after" | "waitsFor" | "timeouts" | "onFailure" | "origin">,
  lane: string,
  retry: RetryPolicy,
  limits: LimitKey[],
): PlanNode {
  return { ...base, kind: "task", lanes: [{ name: lane, labels: [] }], priority: 0, retry, limits };
}

/** The handler's input on every protocol. FlowKit's command also has the node's `io`. */
function inputOf({ io: { input_ref, input_inline } }: GraphNode): JsonObject {
  return input_inline ?? input_ref ?? {};
}

/** Adds the node's id to an object called `target`. */
function withTarget(nodeId: string, args: JsonObject): JsonObject {
  const { target } = args;
  if (typeof target !== "object" || target === null || Array.isArray(target)) return args;
  return { ...args, target: { node_id: nodeId, ...target } };
}

function limitsOf(type: string, { running, types = {} }: FlowkitLimits): LimitKey[] {
  const ofType = Object.hasOwn(types, type) ? types[type] : undefined;
  return [
    ...(running === undefined ? [] : [{ key: "flowkit", held: running }]),
    ...(ofType === undefined ? [] : [{ key: `flowkit:${type}`, held: ofType }]),
  ];
}

function literal(value: JsonObject): FlowkitTemplate {
  return { kind: "literal", value };
}
