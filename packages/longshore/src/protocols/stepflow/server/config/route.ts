// Routes: which component paths lead to which plugins. Releases of Stepflow have written their keys in two ways, and both mean a pattern:
//
//   "/python"                  since 0.13: everything below this prefix, which is left out; "/" is everything
//   "/python/{*component}"     before: the same, with a name for what is below; {component} is one segment of it
//   "/ai/chat"                 before: this very path, for a rule that names the component
//
// A path belongs to the pattern with the most segments of its own; the rules of the next one are tried when no rule of it fits.

import type { Json } from "../../../../core/json/json.ts";
import { pathPattern } from "../../../../core/path-pattern.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";
import type { Path } from "../../dialect/path.ts";

export interface Route {
  readonly pattern: RoutePattern;
  /** The first that fits counts. */
  readonly rules: readonly RouteRule[];
}

export interface RouteRule {
  readonly plugin: string;
  /** All of them must hold for the step's input. */
  readonly conditions: readonly RouteCondition[];
  /** Components, each with a slash in front; null allows all. */
  readonly allow: readonly string[] | null;
  readonly deny: readonly string[];
  /** The component to call, in which `{name}` is replaced by what the pattern found; null for what is left of the path. */
  readonly component: string | null;
  /** The other settings of the rule, for its plugin: `queueName`, `stream`. */
  readonly params: { readonly [name: string]: Json };
}

export interface RouteCondition {
  /** As it was written, and where it leads. */
  readonly path: string;
  readonly steps: Path;
  readonly value: Json;
}

export interface RoutePattern {
  readonly text: string;
  /** How many segments are its own. */
  readonly weight: number;
  /** Takes all that is below, however deep. */
  readonly catches: boolean;
  /** Without a name for what is below. */
  readonly prefix: boolean;
  /** The values of its names, `component` for what is left of the path; undefined when the path does not fit. */
  match(path: string): Captures | undefined;
}

export type Captures = Readonly<Record<string, string>>;

/** Throws LONGSHORE_BAD_CONFIG for what is no pattern. A prefix finds no component when the path is the prefix itself. */
export function routePattern(text: string): RoutePattern {
  const own = withoutEndSlashes(text) || text.slice(0, 1);
  const weight = own.split("/").filter((segment) => segment !== "" && !segment.startsWith("{")).length;
  if (own.includes("{")) return { text, weight, catches: own.includes("{*"), prefix: false, match: pathPattern(own).match };
  const below = pathPattern(own === "/" ? "/{*component}" : `${own}/{*component}`);
  return { text, weight, catches: true, prefix: true, match: (path) => (path === own ? {} : below.match(path)) };
}

/** The component that a rule calls, with a slash in front; null when the pattern has found none. */
export function componentOf(rule: RouteRule, pattern: RoutePattern, captures: Captures): string | null {
  if (rule.component === null) return captures.component === undefined ? null : `/${captures.component}`;
  // Such a rule renames one path, or the value of a name; it is not meant for all that is below.
  if (pattern.prefix && captures.component !== undefined && !/\{\*?component\}/.test(rule.component)) return null;
  const filled = rule.component.replace(/\{\*?([A-Za-z_][\w-]*)\}/g, (whole, name: string) => captures[name] ?? whole);
  return withSlash(filled);
}

export function withSlash(component: string): string {
  return component.startsWith("/") ? component : `/${component}`;
}

/** Best first: more segments of its own, then those that take less. Otherwise in the order in which they are written. */
export function inOrder(routes: readonly Route[]): Route[] {
  return [...routes].sort((a, b) => b.pattern.weight - a.pattern.weight || Number(a.pattern.catches) - Number(b.pattern.catches));
}
