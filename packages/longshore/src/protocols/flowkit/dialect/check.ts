// Finds mistakes in a graph before it runs: unknown functions, and function calls that can only fail. Other files check the form of the
// graph.

import type { JsonObject } from "../../../core/json/json.ts";
import { atOnce, eachInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import type { ReservedLanes } from "../../../engine/board/reserved-lanes.ts";
import { planInSlices } from "./compile.ts";
import { refusal } from "./fields.ts";
import { functionType, type Graph, type GraphNode, readInSlices } from "./graph.ts";
import { type IsSensitive, looksSensitive } from "./sensitive-values.ts";
import { changeVars, isVarsFunction, VarsError } from "./vars.ts";

export interface GraphChecks {
  /** Lane names that are reserved for the server. */
  readonly reserved?: Pick<ReservedLanes, "has">;
  /** Names of the user's functions on this server. */
  readonly functions?: ReadonlySet<string>;
  readonly isSensitive?: IsSensitive;
  /**
   * Returns what is wrong with the arguments of an input adapter, as a sentence about `input_args`. Null when nothing is wrong, or the
   * adapter is unknown.
   */
  adapter?(name: string, args: JsonObject): string | null;
  /** Notified of fields that have no effect. */
  ignored?(field: string): void;
}

/** Functions other than those for variables. */
const builtinFunctions = ["merge.generic", "metrics.aggregate", "noop"] as const;

/** @throws LongshoreError LONGSHORE_BAD_DEFINITION with the field that is wrong. */
export function checkedGraph(document: unknown, checks: GraphChecks = {}): Graph {
  return atOnce(checkInSlices(document, checks));
}

export function* checkInSlices(document: unknown, checks: GraphChecks): Sliced<Graph> {
  const graph = yield* readInSlices(document, checks.ignored);
  yield* eachInSlices(graph.nodes, ({ type }, index) => {
    if (checks.reserved?.has(type))
      throw refusal(`graph.nodes[${index}].type`, `is ${JSON.stringify(type)}, which the server keeps for itself; give it another name`);
  });
  yield* planInSlices(graph);
  const ids = new Set(graph.nodes.map(({ node_id }) => node_id));
  yield* eachInSlices(graph.nodes, (node, index) => {
    const at = `graph.nodes[${index}].io`;
    if (node.type === functionType) checkFunction(node, at, ids, checks);
    else checkAdapter(node, at, checks);
  });
  return graph;
}

function checkAdapter({ io: { input_inline } }: GraphNode, at: string, { adapter }: GraphChecks): void {
  const { input_adapter: name, input_args = {} } = input_inline ?? {};
  if (typeof name !== "string" || name === "") return;
  const field = `${at}.input_inline.input_args`;
  if (typeof input_args !== "object" || input_args === null || Array.isArray(input_args)) {
    throw refusal(field, `is ${JSON.stringify(input_args)}, expected an object`);
  }
  const wrong = adapter?.(name, input_args) ?? null;
  if (wrong !== null) throw refusal(field, wrong);
}

function checkFunction(node: GraphNode, at: string, ids: ReadonlySet<string>, checks: GraphChecks): void {
  const { functions = new Set(), isSensitive = looksSensitive } = checks;
  const { fn = "", fn_args = {} } = node.io;
  if (isVarsFunction(fn)) {
    try {
      changeVars(fn, {}, fn_args, isSensitive);
    } catch (error) {
      if (!(error instanceof VarsError)) throw error;
      throw refusal(`${at}.fn_args${error.field === "" ? "" : `.${error.field}`}`, error.message);
    }
  } else if (fn === "merge.generic") checkMerge(node.node_id, fn_args, `${at}.fn_args`, ids);
  else if (fn === "metrics.aggregate") checkAggregate(fn_args, `${at}.fn_args`, ids);
  else if (fn !== "noop" && !functions.has(fn)) {
    const known = ["vars.set", "vars.merge", "vars.incr", "vars.unset", ...builtinFunctions, ...functions];
    throw refusal(`${at}.fn`, `is ${JSON.stringify(fn)}, expected one of ${known.join(", ")}`);
  }
}

function checkMerge(nodeId: string, { from_nodes, target }: JsonObject, at: string, ids: ReadonlySet<string>): void {
  if (!Array.isArray(from_nodes) || from_nodes.length === 0) throw refusal(`${at}.from_nodes`, "is absent, expected a list of nodes");
  from_nodes.forEach((id, place) => {
    if (!ids.has(id as string))
      throw refusal(`${at}.from_nodes[${place}]`, `names ${JSON.stringify(id)}, which is not a node of the graph`);
  });
  const isTarget = typeof target === "object" && target !== null && !Array.isArray(target) && Object.keys(target).length > 0;
  if (!isTarget) throw refusal(`${at}.target`, `is ${JSON.stringify(target)}, expected an object such as {"key": "merged"}`);
  // Like every result of a node, the merged result belongs to the node itself.
  const owner = (target as JsonObject).node_id ?? nodeId;
  if (owner !== nodeId) throw refusal(`${at}.target.node_id`, `is ${JSON.stringify(owner)}, expected ${JSON.stringify(nodeId)} or nothing`);
}

function checkAggregate({ node_id, mode = "sum" }: JsonObject, at: string, ids: ReadonlySet<string>): void {
  if (!ids.has(node_id as string)) throw refusal(`${at}.node_id`, `is ${JSON.stringify(node_id ?? null)}, expected a node of the graph`);
  if (mode !== "sum" && mode !== "mean") throw refusal(`${at}.mode`, `is ${JSON.stringify(mode)}, expected "sum" or "mean"`);
}
