// Parses a graph as FlowKit's users submit it. Defaults are filled in, legacy forms are accepted, and a wrong field is refused with its
// place. `compile.ts` finds mistakes across nodes. The `tasks` documents have the parsed form.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { shown } from "../../../core/text.ts";
import { nodesMax } from "../../../engine/run/plan.ts";
import { type Condition, readCondition } from "./condition.ts";
import { Fields, type Ignored, refusal } from "./fields.ts";
import { type RetrySettings, readRetry } from "./retry-policy.ts";

export interface Graph {
  /** Our addition: the name of its runs in lists. */
  readonly name?: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly (readonly [string, string])[];
  readonly edges_ex: readonly TriggerEdge[];
}

export interface GraphNode {
  readonly node_id: string;
  /** The role of its workers; `coordinator_fn` for a function of the coordinator. */
  readonly type: string;
  readonly status: "queued";
  readonly attempt_epoch: 0;
  readonly depends_on: readonly string[];
  /** `all`, `any` or `count:k`. */
  readonly fan_in: string;
  readonly retry_policy: RetrySettings;
  readonly routing: { readonly on_success: readonly string[]; readonly on_failure: readonly string[] };
  readonly io: NodeIo;
  /** Our addition: the node runs only if the run's variables match. */
  readonly when?: Condition;
}

export interface NodeIo {
  readonly start_when: "ready" | "first_batch";
  readonly input_ref: JsonObject | null;
  readonly input_inline: JsonObject | null;
  readonly batching: JsonObject | null;
  /** For a `coordinator_fn`. */
  readonly fn?: string;
  readonly fn_args?: JsonObject;
}

/** `to` starts with the first batch of `from`. */
export interface TriggerEdge {
  readonly from: string;
  readonly to: string;
  readonly mode: "async";
  readonly trigger: "on_batch";
}

export const functionType = "coordinator_fn";

/** Ids are used in record keys, URLs and every row. */
const idCharsMax = 200;
/** Names are shown in lines and tables. Names with a leading dot are internal. */
const nameShape = /^[^\p{Cc}.]\P{Cc}*$/u;
/** A type is part of a topic's name, for which Kafka allows these characters. */
const typeShape = /^[\w.-]{1,200}$/;
const typeExpected = "up to 200 letters, digits, dots, dashes and underscores";

const graphFields = ["name", "nodes", "edges", "edges_ex"];
const nodeFields = ["node_id", "type", "status", "attempt_epoch", "depends_on", "fan_in", "retry_policy", "routing", "io", "when"];

/** Fields that the reference's coordinator writes into running nodes: a graph that was copied from there has them. */
const runtimeFields = [
  ...["stats", "stats_cached_at", "lease", "started_at", "finished_at", "last_event_recv_ms", "next_retry_at_ms", "last_error"],
  ...["streaming", "coordinator"],
];

/** Calls `ignored` for fields without effect. @throws LongshoreError LONGSHORE_BAD_DEFINITION that names the wrong field. */
export function* readInSlices(document: unknown, ignored: Ignored = () => {}): Sliced<Graph> {
  const at = "graph";
  const graph = Fields.of(document, at, "an object with nodes", ignored).noneMisspelt(graphFields, ["schema_version"]);
  const nodes = graph.list("nodes");
  if (nodes.length === 0) throw graph.refuse("nodes", "is empty, expected at least one node");
  if (nodes.length > nodesMax) throw graph.refuse("nodes", `has ${nodes.length} nodes, expected at most ${nodesMax}`);
  const edges = yield* mapInSlices(graph.list("edges"), (edge, index) => readEdge(edge, `${at}.edges[${index}]`));
  const triggers = yield* mapInSlices(graph.list("edges_ex"), (edge, index) => readTrigger(edge, `${at}.edges_ex[${index}]`, ignored));
  const incoming = incomingOf(edges);
  const read = yield* mapInSlices(nodes, (node, index) => readNode(node, `${at}.nodes[${index}]`, incoming, ignored));
  return { ...readName(graph), nodes: read, edges, edges_ex: triggers };
}

function readName(graph: Fields): { name?: string } {
  if (graph.value("name") === null) return {};
  const name = graph.text("name", { charsMax: idCharsMax });
  if (!nameShape.test(name)) throw graph.refuse("name", `is ${JSON.stringify(name)}, expected no control characters and no dot in front`);
  return { name };
}

function readNode(document: unknown, at: string, incoming: ReadonlyMap<string, string[]>, ignored: Ignored): GraphNode {
  const node = Fields.of(document, at, "an object with node_id and type", ignored).noneMisspelt(nodeFields, runtimeFields);
  const node_id = node.text("node_id", { charsMax: idCharsMax });
  const type = node.text("type", {});
  if (!typeShape.test(type)) throw node.refuse("type", `is ${JSON.stringify(type.slice(0, 100))}, expected ${typeExpected}`);
  const status = node.value("status");
  if (status !== null && status !== "queued") {
    throw node.refuse("status", `is ${JSON.stringify(status)}, expected "queued" or nothing: no node has begun when a run starts`);
  }
  const depends = node.value("depends_on");
  const routing = node.object("routing").noneMisspelt(["on_success", "on_failure"]);
  const when = node.value("when");
  return {
    node_id,
    type,
    status: "queued",
    attempt_epoch: 0,
    // In the reference, an edge alone makes no dependency. Here it does, for a node without `depends_on`.
    depends_on: depends === null ? [...new Set(incoming.get(node_id) ?? [])] : node.texts("depends_on"),
    fan_in: readFanIn(node),
    retry_policy: readRetry(node.object("retry_policy")),
    routing: { on_success: routing.texts("on_success"), on_failure: routing.texts("on_failure") },
    io: readIo(node.object("io"), type),
    ...(when === null ? {} : { when: readCondition(node.object("when")) }),
  };
}

function readIo(io: Fields, type: string): NodeIo {
  io.noneMisspelt(["start_when", "input_ref", "input_inline", "batching", "fn", "fn_args"]);
  const given = (io.value("start_when") ?? "ready") as Json;
  const start = typeof given === "string" ? given.toLowerCase() : given;
  if (start !== "ready" && start !== "first_batch") {
    throw io.refuse("start_when", `is ${JSON.stringify(given)}, expected "ready" or "first_batch"`);
  }
  const inputs = { input_ref: io.objectOrNull("input_ref"), input_inline: io.objectOrNull("input_inline") };
  const common = { start_when: start, ...inputs, batching: io.objectOrNull("batching") } as const;
  if (type !== functionType) return common;
  return { ...common, fn: io.text("fn", { charsMax: idCharsMax }), fn_args: io.objectOrNull("fn_args") ?? {} };
}

function readFanIn(node: Fields): string {
  const given = node.value("fan_in") ?? "all";
  const text = typeof given === "string" ? given.trim().toLowerCase() : "";
  if (text === "all" || text === "any" || text.startsWith("count:")) return text;
  throw node.refuse("fan_in", `is ${JSON.stringify(given)}, expected "all", "any" or "count:k"`);
}

/** Edges are pairs. Objects with `from` and `to`, as in later drafts, are accepted too. */
function readEdge(document: unknown, at: string): [string, string] {
  const pair = isObject(document) ? [document.from, document.to] : document;
  if (Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string" && typeof pair[1] === "string") return [pair[0], pair[1]];
  throw refusal(at, `is ${shown(document)}, expected ["from", "to"]`);
}

function readTrigger(document: unknown, at: string, ignored: Ignored): TriggerEdge {
  const expected = 'an object such as {"from": "a", "to": "b", "mode": "async", "trigger": "on_batch"}';
  const edge = Fields.of(document, at, expected, ignored).noneMisspelt(["from", "to", "mode", "trigger"]);
  const from = edge.text("from", {});
  const to = edge.text("to", {});
  const [mode, trigger] = [edge.value("mode"), edge.value("trigger")];
  if (mode !== "async") throw edge.refuse("mode", `is ${JSON.stringify(mode)}, expected "async"`);
  if (trigger !== "on_batch") throw edge.refuse("trigger", `is ${JSON.stringify(trigger)}, expected "on_batch"`);
  return { from, to, mode, trigger };
}

function incomingOf(edges: readonly (readonly [string, string])[]): Map<string, string[]> {
  const incoming = new Map<string, string[]>();
  for (const [from, to] of edges) {
    const known = incoming.get(to);
    if (known === undefined) incoming.set(to, [from]);
    else known.push(from);
  }
  return incoming;
}
