// Paths into the input of a step, as the conditions of routes have them: `$.model`, `$.config['max tokens']`, `$.items[0]`; `$` is all of
// it, and a plain name is one field.

import type { Json } from "../../../json.ts";

export type InputPath = readonly (string | number)[];

/** Null when it is no path. */
export function parseInputPath(text: string): InputPath | null {
  if (text === "" || text === "$") return [];
  if (!text.startsWith("$")) return [text];
  const step = /\.([A-Za-z_$][\w$-]*)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;
  const path: (string | number)[] = [];
  for (let at = 1; at < text.length; at = step.lastIndex) {
    step.lastIndex = at;
    const found = step.exec(text);
    if (found === null) return null;
    const [, name, index, single, double] = found;
    path.push(index === undefined ? (name ?? unescaped(single ?? double ?? "")) : Number(index));
  }
  return path;
}

/** Undefined when it leads nowhere. */
export function valueAt(value: Json, path: InputPath): Json | undefined {
  let at: Json | undefined = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null) return undefined;
    if (Array.isArray(at)) at = typeof part === "number" ? at[part] : undefined;
    else at = Object.hasOwn(at, part) ? (at as { [name: string]: Json })[part] : undefined;
  }
  return at;
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, "$1");
}
