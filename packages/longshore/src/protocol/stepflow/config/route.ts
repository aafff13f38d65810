// Routes: which component paths lead to which plugins. Releases of Stepflow have written their keys in two ways, and both mean a pattern:
//
//   "/python"                  since 0.13: everything below this prefix, which is left out; "/" is everything
//   "/python/{*component}"     before: the same, with a name for what is below; {component} is one segment of it
//   "/ai/chat"                 before: this very path, for a rule that says the component
//
// A path belongs to the pattern with the most segments of its own; the rules of the next one are asked when no rule of it fits.

import type { Json } from "../../../json.ts";
import type { InputPath } from "./input-path.ts";

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
  /** The component to ask the plugin for, in which `{name}` stands for what the pattern found; null for what is left of the path. */
  readonly component: string | null;
  /** Whatever else the rule says, for its plugin: `queueName`, `stream`. */
  readonly params: { readonly [name: string]: Json };
}

export interface RouteCondition {
  /** As it was written, and where it leads. */
  readonly path: string;
  readonly steps: InputPath;
  readonly value: Json;
}

type Segment = { readonly literal: string } | { readonly name: string; readonly rest: boolean };

export interface RoutePattern {
  readonly text: string;
  readonly segments: readonly Segment[];
  /** How many segments are literal. */
  readonly weight: number;
  /** Without a name for what is below: anything may be. */
  readonly prefix: boolean;
}

/** What the names of a pattern stand for in one path; `component` is what is left of it. */
export type Captures = { readonly [name: string]: string };

const placeholder = /^\{(\*?)([A-Za-z_][\w-]*)\}$/;

/** Answers what is wrong with it as a text when it is no pattern. */
export function parsePattern(text: string): RoutePattern | string {
  if (!text.startsWith("/")) return "it has no slash in front";
  const segments: Segment[] = [];
  const names = new Set<string>();
  for (const part of segmentsOf(text)) {
    const named = placeholder.exec(part);
    if (named === null && /[{}*]/.test(part)) return `'${part}' is neither a plain name nor {name} nor {*name}`;
    if (segments.some((segment) => "rest" in segment && segment.rest)) return "{*name} must be at its end";
    const name = named?.[2];
    if (name === undefined) segments.push({ literal: part });
    else if (names.has(name)) return `it has {${name}} twice`;
    else segments.push({ name, rest: named?.[1] === "*" });
    if (name !== undefined) names.add(name);
  }
  const weight = segments.filter((segment) => "literal" in segment).length;
  return { text, segments, weight, prefix: weight === segments.length };
}

/** Null when the path does not fit. A prefix captures what is below it as `component`, and nothing when the path is the prefix itself. */
export function matchPattern(pattern: RoutePattern, path: string): Captures | null {
  const parts = segmentsOf(path);
  const captures: { [name: string]: string } = {};
  for (const [at, segment] of pattern.segments.entries()) {
    const part = parts[at];
    if (part === undefined) return null;
    if ("literal" in segment) {
      if (segment.literal !== part) return null;
    } else if (segment.rest) {
      captures[segment.name] = parts.slice(at).join("/");
      return captures;
    } else captures[segment.name] = part;
  }
  const below = parts.slice(pattern.segments.length);
  if (below.length === 0) return captures;
  return pattern.prefix ? { ...captures, component: below.join("/") } : null;
}

/** The component that a rule asks its plugin for, with a slash in front; null when the pattern has found none. */
export function componentOf(rule: RouteRule, pattern: RoutePattern, captures: Captures): string | null {
  if (rule.component === null) return captures.component === undefined ? null : `/${captures.component}`;
  // Such a rule renames one path, or what a name stands for; it is not meant for all that is below.
  if (pattern.prefix && captures.component !== undefined && !/\{\*?component\}/.test(rule.component)) return null;
  const filled = rule.component.replace(/\{\*?([A-Za-z_][\w-]*)\}/g, (whole, name: string) => captures[name] ?? whole);
  return withSlash(filled);
}

export function withSlash(component: string): string {
  return component.startsWith("/") ? component : `/${component}`;
}

/** Best first: more segments of its own, then fewer names for many. Otherwise in the order in which they are written. */
export function inOrder(routes: readonly Route[]): Route[] {
  const catches = ({ pattern }: Route) => pattern.prefix || pattern.segments.some((segment) => "rest" in segment && segment.rest);
  return [...routes].sort((a, b) => b.pattern.weight - a.pattern.weight || Number(catches(a)) - Number(catches(b)));
}

function segmentsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}
