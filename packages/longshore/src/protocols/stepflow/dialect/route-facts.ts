// What diagnostics need to know about a route configuration. This is a port like router.ts, but its results do not depend on a run.

import type { Json } from "../../../core/json/json.ts";

export interface RouteFacts {
  /** The names of all plugins. */
  readonly plugins: readonly string[];
  readonly routes: readonly RouteFact[];
  /** All plugins that might take steps of this component, whatever the input and registrations are. Empty when no route matches. */
  candidates(component: string): readonly ComponentFact[];
}

export interface RouteFact {
  /** As written in the configuration. */
  readonly path: string;
  /** The plugin of each rule, in order. */
  readonly plugins: readonly string[];
}

export interface ComponentFact {
  readonly plugin: string;
  /** A type such as `builtin` or `mock`. */
  readonly type: string;
  /** The path without its route's prefix. */
  readonly remainder: string;
  /** JSON Schemas, if the configuration has them. */
  readonly inputSchema?: Json;
  readonly outputSchema?: Json;
}

/** The schema of a component's output; null when it is unknown or depends on the route. */
export function outputSchemaOf(component: string, routes: RouteFacts): Json {
  return only(routes.candidates(component))?.outputSchema ?? null;
}

export function inputSchemaOf(component: string, routes: RouteFacts): Json {
  return only(routes.candidates(component))?.inputSchema ?? null;
}

function only(candidates: readonly ComponentFact[]): ComponentFact | undefined {
  return candidates.length === 1 ? candidates[0] : undefined;
}
