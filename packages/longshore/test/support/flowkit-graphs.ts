// Graphs for tests of FlowKit's coordinator.

import type { JsonObject } from "../../src/core/json/json.ts";

export function node(node_id: string, type: string, more: JsonObject = {}): JsonObject {
  return { node_id, type, ...more };
}

/** A function of the coordinator. */
export function fn(node_id: string, name: string, fn_args: JsonObject, depends_on: string[] = [], more: JsonObject = {}): JsonObject {
  return { node_id, type: "coordinator_fn", depends_on, io: { fn: name, fn_args }, ...more };
}

/** Works out the figures of a node once it is done. */
export function sumOf(node_id: string, mode = "sum"): JsonObject {
  return fn(`sum-${node_id}`, "metrics.aggregate", { node_id, mode }, [node_id]);
}

/** Reads what others stream, from their first batch on. */
export function pulls(from_nodes: string[], start_when = "first_batch", more: JsonObject = {}): JsonObject {
  const input_inline = { input_adapter: "pull.from_artifacts", input_args: { from_nodes } };
  return { depends_on: from_nodes, io: { start_when, input_inline }, ...more };
}

/** What a run worked out about a node. */
export function statsOf(run: { output: string | null }, node_id: string): unknown {
  const { nodes } = JSON.parse(run.output ?? "null") as { nodes: { node_id: string; stats: unknown }[] };
  return nodes.find((one) => one.node_id === node_id)?.stats;
}
