// Paths into values: `$.a.b[0]['x y']`. `$` or an empty text is the whole value. Any other text is the name of one field, including its
// dots.

import { isObject, type Json } from "../../../core/json/json.ts";

/** Field names, and indexes of lists. */
export type Path = readonly (string | number)[];

export type ParsedPath = { readonly path: Path } | { readonly fault: string };

/** Maximum number of parts: real paths have fewer. */
const partsMax = 100;

export function parsePath(text: string): ParsedPath {
  const trimmed = text.trim();
  if (text === "") return { path: [] };
  if (!trimmed.startsWith("$")) return { path: [text] };
  const path: (string | number)[] = [];
  let at = 1;
  while (at < trimmed.length) {
    const opens = trimmed[at];
    if (opens === "[") {
      const close = bracketEnd(trimmed, at);
      if (close < 0) return { fault: `the bracket in ${JSON.stringify(text)} is not closed` };
      const key = bracketed(trimmed.slice(at + 1, close).trim());
      if (key === null) return { fault: `${JSON.stringify(trimmed.slice(at, close + 1))} is neither a number nor a quoted name` };
      path.push(key);
      at = close + 1;
    } else if (opens === ".") {
      const end = nameEnd(trimmed, at + 1);
      if (end > at + 1) path.push(trimmed.slice(at + 1, end));
      at = end;
    } else return { fault: `${JSON.stringify(text)} has ${JSON.stringify(opens)} where a dot or a bracket is expected` };
  }
  if (path.length > partsMax) return { fault: `the path has ${path.length} parts, at most ${partsMax} are allowed` };
  return { path };
}

/** A quoted name may contain a bracket. */
function bracketEnd(text: string, from: number): number {
  const quote = text[from + 1];
  const quoted = quote === '"' || quote === "'" ? text.indexOf(`${quote}]`, from + 2) : -1;
  return quoted < 0 ? text.indexOf("]", from) : quoted + 1;
}

function nameEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== "." && text[end] !== "[") end++;
  return end;
}

/** An index or a quoted name; null when it is neither. */
function bracketed(content: string): string | number | null {
  if (/^\d{1,9}$/.test(content)) return Number(content);
  const quote = content[0];
  const quoted = content.length >= 2 && (quote === '"' || quote === "'") && content.endsWith(quote);
  return quoted ? content.slice(1, -1) : null;
}

/** `$.a.b[0]["x.y"]`. */
export function pathText(path: Path): string {
  let text = "$";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else text += /[.[\]]/.test(key) || key === "" ? `[${JSON.stringify(key)}]` : `.${key}`;
  }
  return text;
}

/** `missing` is the path up to the first part that does not exist. */
export function follow(value: Json, path: Path): { readonly value: Json } | { readonly missing: Path } {
  let here = value;
  for (const [at, key] of path.entries()) {
    const inside = typeof key === "number" ? Array.isArray(here) && key < here.length : isObject(here) && Object.hasOwn(here, key);
    if (!inside) return { missing: path.slice(0, at + 1) };
    here = (here as { [key: string]: Json })[key] as Json;
  }
  return { value: here };
}
