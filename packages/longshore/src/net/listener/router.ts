// Finds the route of a path. Compiled once from the route tables. A path without parameters is one map lookup. The others walk a tree of
// segments in which a literal segment takes precedence over a parameter. A trailing slash makes a different path.

import { actions } from "../../core/actions.ts";
import type { Route, RouteGroup } from "../http/http.ts";

export interface RouteEntry {
  readonly route: Route;
  readonly group: RouteGroup;
  /** Names of the path parameters, in order. */
  readonly names: readonly string[];
  /** The position among all routes, for tables that are indexed by it. */
  readonly index: number;
}

export interface Match {
  /** Absent when no route has this path, or none has this method. */
  readonly entry: RouteEntry | undefined;
  /** The group that responds: the owner of the route or, without one, of the longest known part of the path. */
  readonly group: RouteGroup;
  /** Raw path parameters, in order; still percent-encoded. */
  readonly values: readonly string[];
  /** Methods of this path, for `allow`; empty when the path is unknown. */
  readonly methods: readonly string[];
  /** What the group does not serve at this path (`unserved` of the group). */
  readonly unserved?: string | undefined;
}

export interface Router {
  readonly entries: readonly RouteEntry[];
  find(method: string, path: string): Match;
}

/** Compiles the tables. Throws for two routes with the same method and shape, which is a programming error. */
export function createRouter(groups: readonly RouteGroup[], fallback: RouteGroup): Router {
  const root = createNode();
  const literals = new Map<string, Node>();
  const entries: RouteEntry[] = [];

  for (const group of groups) {
    for (const route of group.routes) {
      const segments = segmentsOf(route.path);
      const names = segments.filter(isParameter).map((segment) => segment.slice(1));
      const entry: RouteEntry = { route, group, names, index: entries.length };
      const node = insert(root, segments, group);
      if (node.routes.has(route.method)) throw new TypeError(`Route ${route.method} ${route.path} is listed twice.`);
      node.routes.set(route.method, entry);
      node.methods = methodsOf(node.routes);
      if (names.length === 0) literals.set(route.path, node);
      entries.push(entry);
    }
    for (const [path, what] of Object.entries(group.unserved ?? {})) insert(root, segmentsOf(path), group).unserved = what;
  }

  return {
    entries,
    find(method, path) {
      const literal = literals.get(path);
      const direct = literal && routeFor(literal, method);
      if (direct !== undefined) return { entry: direct, group: direct.group, values: none, methods: none };
      return search(root, method, path, fallback);
    },
  };
}

interface Node {
  readonly literals: Map<string, Node>;
  parameter: Node | undefined;
  readonly routes: Map<string, RouteEntry>;
  methods: readonly string[];
  /** The group that owns everything below this node; `shared` when there are several. */
  owner: RouteGroup | "shared" | undefined;
  /** What is not served here and below. */
  unserved: string | undefined;
}

const none: readonly string[] = [];

function createNode(): Node {
  return { literals: new Map(), parameter: undefined, routes: new Map(), methods: none, owner: undefined, unserved: undefined };
}

function insert(root: Node, segments: readonly string[], group: RouteGroup): Node {
  let node = root;
  for (const segment of segments) {
    let next = isParameter(segment) ? node.parameter : node.literals.get(segment);
    if (next === undefined) {
      next = createNode();
      if (isParameter(segment)) node.parameter = next;
      else node.literals.set(segment, next);
    }
    next.owner = next.owner === undefined || next.owner === group ? group : "shared";
    node = next;
  }
  return node;
}

/** The state of one search. */
interface Search {
  readonly method: string;
  readonly path: string;
  readonly values: string[];
  /** The first node whose path matches but whose methods do not. */
  other: Node | undefined;
  /** The owner of the deepest node reached. */
  owner: RouteGroup | undefined;
  depth: number;
  unserved: string | undefined;
}

function search(root: Node, method: string, path: string, fallback: RouteGroup): Match {
  const state: Search = { method, path, values: [], other: undefined, owner: undefined, depth: 0, unserved: undefined };
  const entry = path.charCodeAt(0) === slash ? walk(root, state, 1, 1) : undefined;
  if (entry !== undefined) return { entry, group: entry.group, values: state.values, methods: none };
  return {
    entry: undefined,
    group: state.owner ?? fallback,
    values: none,
    methods: state.other?.methods ?? none,
    unserved: state.unserved,
  };
}

const slash = 0x2f;

function walk(node: Node, state: Search, at: number, depth: number): RouteEntry | undefined {
  const end = state.path.indexOf("/", at);
  const segment = end < 0 ? state.path.slice(at) : state.path.slice(at, end);
  const literal = node.literals.get(segment);
  if (literal !== undefined) {
    const found = step(literal, state, end, depth);
    if (found !== undefined) return found;
  }
  if (node.parameter === undefined || segment === "") return undefined;
  state.values.push(segment);
  const found = step(node.parameter, state, end, depth);
  if (found === undefined) state.values.pop();
  return found;
}

function step(node: Node, state: Search, end: number, depth: number): RouteEntry | undefined {
  if (depth > state.depth && node.owner !== "shared") {
    state.depth = depth;
    state.owner = node.owner;
  }
  state.unserved ??= node.unserved;
  if (end >= 0) return walk(node, state, end + 1, depth + 1);
  const entry = routeFor(node, state.method);
  if (entry === undefined && node.methods.length > 0) state.other ??= node;
  return entry;
}

/** The GET route handles HEAD; the listener leaves out the body. */
function routeFor(node: Node, method: string): RouteEntry | undefined {
  return node.routes.get(method) ?? (method === "HEAD" ? headRoute(node.routes) : undefined);
}

/** HEAD never changes anything. Some protocols take tasks by GET: such a route has no HEAD. */
function headRoute(routes: ReadonlyMap<string, RouteEntry>): RouteEntry | undefined {
  const entry = routes.get("GET");
  return entry !== undefined && readsOnly(entry.route) ? entry : undefined;
}

function readsOnly({ action, also = action }: Route): boolean {
  return actions[action].reads === true && actions[also].reads === true;
}

function methodsOf(routes: ReadonlyMap<string, RouteEntry>): string[] {
  const head = headRoute(routes) === undefined ? [] : ["HEAD"];
  return [...routes.keys()].flatMap((method) => (method === "GET" ? ["GET", ...head] : [method]));
}

function segmentsOf(path: string): string[] {
  if (!path.startsWith("/")) throw new TypeError(`Route path ${JSON.stringify(path)} must begin with a slash.`);
  return path.slice(1).split("/");
}

function isParameter(segment: string): boolean {
  return segment.startsWith(":");
}
