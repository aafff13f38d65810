// The registered components of a plugin's workers. They are stored as documents, so that a restarted server knows them before the workers
// reconnect. A worker names a component by an id, which it gets back unchanged, and by a path below its route, in which `{x}` matches one
// segment and `{*x}` all that follow.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import type { Document, DocumentStore } from "../../../../engine/run/documents.ts";
import { type RoutePattern, routePattern, withSlash } from "./route.ts";

export interface RegisteredComponent {
  /** Exactly as the worker sent it. */
  readonly id: string;
  readonly path: string;
  readonly description?: string;
  /** JSON Schemas. */
  readonly inputSchema?: Json;
  readonly outputSchema?: Json;
}

export interface FoundComponent {
  readonly component: RegisteredComponent;
  readonly params: Readonly<Record<string, string>>;
}

/** The kind of these documents. The name of a document is the lane of the components. */
export const componentsKind = "stepflow-components";
/** Always the same version: a new list replaces the old one. */
const version = 1;

/** Components in one worker's list. Longer lists are generated, and every discovery would carry them. */
export const componentsMax = 10_000;

export function componentsBody(components: readonly RegisteredComponent[]): string {
  return JSON.stringify({ components });
}

export async function keepComponents(documents: DocumentStore, lane: string, components: readonly RegisteredComponent[]): Promise<void> {
  await documents.keepDocument({ kind: componentsKind, name: lane, version, body: componentsBody(components) });
}

/** Null when no worker has registered components. */
export async function componentsOn(documents: DocumentStore, lane: string): Promise<RegisteredComponent[] | null> {
  const found: Document | undefined = await documents.document(componentsKind, lane);
  return found === undefined ? null : componentsIn(JSON.parse(found.body) as Json);
}

/** Parses the text of `componentsBody`. */
export function componentsIn(body: Json): RegisteredComponent[] {
  const listed = isObject(body) ? (body as JsonObject).components : undefined;
  return Array.isArray(listed) ? (listed as unknown as RegisteredComponent[]) : [];
}

/** Uses the id as the path for workers that send no path. */
export function pathOf(id: string, path: string | undefined): string {
  return path === undefined || path === "" ? withSlash(id) : withSlash(path);
}

/** The component at a path, with the values of its placeholders. Literal paths come before patterns. Null when there is none. */
export function findComponent(components: readonly RegisteredComponent[], path: string): FoundComponent | null {
  const wanted = withSlash(path);
  const literal = components.find((component) => component.path === wanted);
  if (literal !== undefined) return { component: literal, params: {} };
  let best: (FoundComponent & { weight: number }) | null = null;
  for (const component of components) {
    const pattern = patternOf(component.path);
    const params = pattern?.match(wanted);
    if (pattern === null || params === undefined) continue;
    if (best === null || pattern.weight > best.weight) best = { component, params, weight: pattern.weight };
  }
  return best === null ? null : { component: best.component, params: best.params };
}

/** Null for a path without placeholders and for an invalid pattern, because a worker may send any text. */
function patternOf(path: string): RoutePattern | null {
  if (!path.includes("{")) return null;
  try {
    return routePattern(path);
  } catch {
    // Such a component is listed but cannot be called by a path.
    return null;
  }
}
