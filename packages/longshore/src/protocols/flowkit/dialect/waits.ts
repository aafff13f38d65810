// What a node waits for: all, any or some of its dependencies; their first batch instead of their end; or the failure of another node.

import { mapInSlices, type Sliced } from "../../../core/slices/slice-work.ts";
import { refusal } from "./fields.ts";
import type { Graph, GraphNode } from "./graph.ts";
import type { FlowkitTemplate, When } from "./resolve.ts";

export interface Waits {
  readonly after: readonly number[];
  readonly waitsFor: "done" | "settled";
  /** The nodes of `after` whose first part is enough. */
  readonly onFirstPart?: readonly number[];
  /** This many of `after` are enough. */
  readonly threshold?: number;
  readonly when?: FlowkitTemplate;
}

type Find = (field: string, id: string) => number;

/** One for each node, in the order of the nodes. */
export function* waitsOf(graph: Graph, index: ReadonlyMap<string, number>, at: string): Sliced<Waits[]> {
  const find: Find = (field, id) => {
    const position = index.get(id);
    if (position === undefined) throw refusal(field, `names ${JSON.stringify(id)}, which is not a node of the graph`);
    return position;
  };
  const routes = routesOf(graph, find, at);
  const triggers = triggersOf(graph, find, at);
  checkEdges(graph, find, at);
  yield;
  return yield* mapInSlices(graph.nodes, (node, position) => {
    const field = `${at}.nodes[${position}]`;
    const route = routes.get(position);
    const depends = node.depends_on.map((id, place) => index.get(id) ?? find(`${field}.depends_on[${place}]`, id));
    const starts = streamed(node, field, depends, triggers.get(position), find) ?? joined(node, field, depends);
    return route === undefined ? { ...starts, ...whenOf(node) } : routed(node, field, starts, route);
  });
}

/** As in the reference, a node that starts with first batches waits only for those: of k sources with `count:k`, else of one. */
function streamed(
  node: GraphNode,
  field: string,
  depends: readonly number[],
  triggers: readonly number[] | undefined,
  find: Find,
): Waits | null {
  const named = sourcesOf(node, field, find);
  if (node.io.start_when !== "first_batch") {
    return triggers === undefined ? null : { after: triggers, waitsFor: "done", onFirstPart: triggers, threshold: 1 };
  }
  const sources = [...new Set([...(named.length > 0 ? named : depends), ...(triggers ?? [])])];
  if (sources.length === 0) {
    throw refusal(`${field}.io.start_when`, "is first_batch, but neither input_args.from_nodes nor depends_on names a source");
  }
  const threshold = node.fan_in.startsWith("count:") ? countOf(node, field, sources.length) : 1;
  return { after: sources, waitsFor: "done", onFirstPart: sources, threshold };
}

function joined(node: GraphNode, field: string, depends: readonly number[]): Waits {
  const { fan_in } = node;
  if (fan_in === "all") return { after: depends, waitsFor: "done" };
  if (fan_in === "any" && depends.length === 0) throw refusal(`${field}.fan_in`, "is any, but depends_on is empty: it would never start");
  const threshold = fan_in === "any" ? 1 : countOf(node, field, depends.length);
  return { after: depends, waitsFor: "done", ...(threshold < depends.length ? { threshold } : {}) };
}

/** An unreadable number means all of them, as in the reference. */
function countOf({ fan_in }: GraphNode, field: string, among: number): number {
  const text = fan_in.slice("count:".length).trim();
  if (!/^\d+$/.test(text)) return among;
  const count = Number(text);
  if (count >= 1 && count <= among) return count;
  if (among === 0) throw refusal(`${field}.fan_in`, `is ${JSON.stringify(fan_in)}, but it depends on no node: it would never start`);
  throw refusal(`${field}.fan_in`, `is ${JSON.stringify(fan_in)}, expected a count from 1 to ${among}: there are no more to wait for`);
}

interface Route {
  /** The nodes whose success, or whose failure, leads to this node. */
  readonly success: number[];
  readonly failure: number[];
  /** True when a source routes to this node, but its edges do not lead here. Edges take precedence over routing. */
  blocked: boolean;
}

function routesOf(graph: Graph, find: Find, at: string): Map<number, Route> {
  const routes = new Map<number, Route>();
  const routeOf = (target: number): Route => {
    const route = routes.get(target) ?? { success: [], failure: [], blocked: false };
    routes.set(target, route);
    return route;
  };
  const followers = new Map<string, Set<string>>();
  for (const [from, to] of graph.edges) followers.set(from, (followers.get(from) ?? new Set()).add(to));
  graph.nodes.forEach(({ node_id, routing }, source) => {
    const field = `${at}.nodes[${source}].routing`;
    const explicit = followers.get(node_id);
    routing.on_success.forEach((id, place) => {
      const target = find(`${field}.on_success[${place}]`, id);
      if (explicit === undefined) routeOf(target).success.push(source);
      else if (!explicit.has(id)) routeOf(target).blocked = true;
    });
    routing.on_failure.forEach((id, place) => {
      routeOf(find(`${field}.on_failure[${place}]`, id)).failure.push(source);
    });
  });
  return routes;
}

function routed(node: GraphNode, field: string, starts: Waits, route: Route): Waits {
  if (route.blocked) return { ...starts, when: { kind: "when", when: { never: true } } };
  if (route.failure.length === 0) {
    if (starts.threshold !== undefined) return { ...starts, ...whenOf(node) };
    return { after: [...new Set([...starts.after, ...route.success])], waitsFor: "done", ...whenOf(node) };
  }
  if (route.success.length > 0 || starts.threshold !== undefined || node.when !== undefined) {
    throw refusal(`${field}`, "is named by a routing.on_failure, which cannot be combined with on_success, first_batch, fan_in or when");
  }
  const after = [...new Set([...starts.after, ...route.failure])];
  return {
    after,
    waitsFor: "settled",
    when: { kind: "when", when: { failed: route.failure, done: without(starts.after, route.failure) } },
  };
}

function without(all: readonly number[], some: readonly number[]): number[] {
  const others = new Set(some);
  return all.filter((one) => !others.has(one));
}

function whenOf({ when }: GraphNode): { when?: FlowkitTemplate } {
  return when === undefined ? {} : { when: { kind: "when", when: { holds: when } satisfies When } };
}

function triggersOf(graph: Graph, find: Find, at: string): Map<number, number[]> {
  const triggers = new Map<number, Set<number>>();
  graph.edges_ex.forEach(({ from, to }, place) => {
    const field = `${at}.edges_ex[${place}]`;
    const [source, target] = [find(`${field}.from`, from), find(`${field}.to`, to)];
    triggers.set(target, (triggers.get(target) ?? new Set()).add(source));
  });
  return new Map(Array.from(triggers, ([target, sources]) => [target, [...sources]]));
}

function checkEdges(graph: Graph, find: Find, at: string): void {
  graph.edges.forEach((edge, place) => {
    edge.forEach((id, end) => {
      find(`${at}.edges[${place}][${end}]`, id);
    });
  });
}

/** The nodes that the adapter of a node reads from, in both notations. Null counts as absent; the adapter refuses invalid names. */
function sourcesOf(node: GraphNode, field: string, find: Find): number[] {
  const args = node.io.input_inline?.input_args;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return [];
  const { from_nodes, from_node } = args;
  const listed = Array.isArray(from_nodes) && from_nodes.length > 0 ? from_nodes : [from_node];
  const names = listed.filter((name): name is string => typeof name === "string");
  const sources = [...new Set(names)].map((name) => find(`${field}.io.input_inline.input_args.from_nodes`, name));
  return sources;
}
