// Routes: which component paths lead to which plugins. The keys of routes are patterns. Stepflow's releases have two notations for them:
//
// "/python" (since 0.13): everything below this prefix, which is removed; "/" is everything.
// "/python/{*component}" (before): the same, with a name for what is below; {component} is one segment of it.
// "/ai/chat" (before): exactly this path, for a rule that names the component.
//
// A path belongs to the pattern with the most literal segments. When none of its rules matches, the rules of the next pattern are tried.

import type { Json } from "../../../../core/json/json.ts";
import { pathPattern } from "../../../../core/path-pattern.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";
import type { Path } from "../../dialect/path.ts";

export interface Route {
  readonly pattern: RoutePattern;
  /** The first matching rule counts. */
  readonly rules: readonly RouteRule[];
}

export interface RouteRule {
  readonly plugin: string;
  /** All of them must hold for the step's input. */
  readonly conditions: readonly RouteCondition[];
  /** Allowed components, with a leading slash; null allows all. */
  readonly allow: readonly string[] | null;
  readonly deny: readonly string[];
  /**
   * The component to call, in which `{name}` is replaced by the text that the pattern matched. Null: the component is the rest of the path.
   */
  readonly component: string | null;
  /** Further settings of the rule for its plugin: `queueName`, `stream`. */
  readonly params: { readonly [name: string]: Json };
}

export interface RouteCondition {
  /** The condition's path as written; `steps` is its parsed form. */
  readonly path: string;
  readonly steps: Path;
  readonly value: Json;
}

export interface RoutePattern {
  readonly text: string;
  /** The number of literal segments. */
  readonly weight: number;
  /** Matches everything below, at any depth. */
  readonly catches: boolean;
  /** True for a prefix without a name for the rest of the path. */
  readonly prefix: boolean;
  /** The values of the placeholders, with `component` for the rest of the path; undefined when the path does not match. */
  match(path: string): Captures | undefined;
}

export type Captures = Readonly<Record<string, string>>;

/** Throws LONGSHORE_BAD_CONFIG for an invalid pattern. A prefix matches no component when the path is the prefix itself. */
export function routePattern(text: string): RoutePattern {
  const own = withoutEndSlashes(text) || text.slice(0, 1);
  const weight = own.split("/").filter((segment) => segment !== "" && !segment.startsWith("{")).length;
  if (own.includes("{")) return { text, weight, catches: own.includes("{*"), prefix: false, match: pathPattern(own).match };
  const below = pathPattern(own === "/" ? "/{*component}" : `${own}/{*component}`);
  return { text, weight, catches: true, prefix: true, match: (path) => (path === own ? {} : below.match(path)) };
}

/** The component that a rule calls, with a leading slash; null when the pattern matched none. */
export function componentOf(rule: RouteRule, pattern: RoutePattern, captures: Captures): string | null {
  if (rule.component === null) return captures.component === undefined ? null : `/${captures.component}`;
  // A rule with a component renames one path or the value of a placeholder. It does not apply to everything below a prefix.
  if (pattern.prefix && captures.component !== undefined && !/\{\*?component\}/.test(rule.component)) return null;
  const filled = rule.component.replace(/\{\*?([A-Za-z_][\w-]*)\}/g, (whole, name: string) => captures[name] ?? whole);
  return withSlash(filled);
}

export function withSlash(component: string): string {
  return component.startsWith("/") ? component : `/${component}`;
}

/** Best first: patterns with more literal segments, then patterns that match less. Equal patterns stay in the order of the file. */
export function inOrder(routes: readonly Route[]): Route[] {
  return [...routes].sort((a, b) => b.pattern.weight - a.pattern.weight || Number(a.pattern.catches) - Number(b.pattern.catches));
}
