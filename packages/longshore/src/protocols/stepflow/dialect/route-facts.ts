// A route configuration for diagnostics: a port like the router, without a run.

import type { Json } from "../../../core/json/json.ts";

export interface RouteFacts {
  /** Every plugin by name. */
  readonly plugins: readonly string[];
  readonly routes: readonly RouteFact[];
  /** Whatever might take steps of this component, input and registrations aside; empty when no route leads anywhere. */
  candidates(component: string): readonly ComponentFact[];
}

export interface RouteFact {
  /** As it is written. */
  readonly path: string;
  /** The plugin of each of its rules, in order. */
  readonly plugins: readonly string[];
}

export interface ComponentFact {
  readonly plugin: string;
  /** Such as `builtin` or `mock`. */
  readonly type: string;
  /** The path without its route's prefix. */
  readonly remainder: string;
  /** JSON Schemas, where the configuration has them. */
  readonly inputSchema?: Json;
  readonly outputSchema?: Json;
}

/** The schema of what a component gives; null when it is not known, or depends on where the step is routed. */
export function outputSchemaOf(component: string, routes: RouteFacts): Json {
  return only(routes.candidates(component))?.outputSchema ?? null;
}

export function inputSchemaOf(component: string, routes: RouteFacts): Json {
  return only(routes.candidates(component))?.inputSchema ?? null;
}

function only(candidates: readonly ComponentFact[]): ComponentFact | undefined {
  return candidates.length === 1 ? candidates[0] : undefined;
}
