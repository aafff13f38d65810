// Paths with placeholders: `/core/{lang}` matches one segment, `/files/{*rest}` matches one or more remaining segments. Orchestrators that
// find tasks by path use this syntax.

import { LongshoreError } from "./errors.ts";

export interface PathPattern {
  readonly text: string;
  /** True for a pattern without placeholders, which matches only itself. */
  readonly literal: boolean;
  /** The values of the placeholders, or undefined when the path does not match. */
  match(path: string): Readonly<Record<string, string>> | undefined;
}

/** No orchestrator routes longer paths. */
const charsMax = 500;

type Segment = { readonly text: string } | { readonly place: string; readonly rest: boolean };

/** Throws LONGSHORE_BAD_CONFIG for an invalid pattern; `field` is its name in the message. */
export function pathPattern(text: string, field = "path"): PathPattern {
  const segments = text.slice(1).split("/").map(segmentOf);
  const places = segments.flatMap((segment) => (segment !== undefined && "place" in segment ? [segment.place] : []));
  const restAt = segments.findIndex((segment) => segment !== undefined && "rest" in segment && segment.rest);
  const fits = text.startsWith("/") && text.length <= charsMax && !segments.includes(undefined);
  const usable = fits && new Set(places).size === places.length && (restAt === -1 || restAt === segments.length - 1);
  if (!usable) {
    const expected = `a path such as "/files/{kind}/{*rest}": each place named once, and {*rest} last`;
    const message = `${field} is ${JSON.stringify(text)}, expected ${expected}.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field, expected } });
  }
  return {
    text,
    literal: places.length === 0,
    match: (path) => (places.length === 0 ? (path === text ? {} : undefined) : fill(segments as Segment[], path)),
  };
}

function segmentOf(text: string): Segment | undefined {
  if (/^[\w.~:-]+$/.test(text)) return { text };
  const [, star, place] = /^\{(\*?)([A-Za-z_]\w*)\}$/.exec(text) ?? [];
  return place === undefined ? undefined : { place, rest: star === "*" };
}

function fill(segments: readonly Segment[], path: string): Readonly<Record<string, string>> | undefined {
  if (!path.startsWith("/")) return undefined;
  const given = path.slice(1).split("/");
  const filled: Record<string, string> = {};
  for (const [at, segment] of segments.entries()) {
    const value = given[at];
    if (value === undefined || value === "") return undefined;
    if ("text" in segment) {
      if (value !== segment.text) return undefined;
    } else if (segment.rest) {
      filled[segment.place] = given.slice(at).join("/");
      return filled;
    } else filled[segment.place] = value;
  }
  return given.length === segments.length ? filled : undefined;
}
