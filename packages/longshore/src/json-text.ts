// JSON as text, for what is addressed by the hash of how it was written: reading it into values and writing it again would turn 1.0 into 1,
// round large whole numbers, and put keys that look like numbers first.

import type { Json } from "./json.ts";

const quote = 0x22;
const backslash = 0x5c;

/** The same JSON without the space between its signs, and every string in its shortest spelling. `text` must be JSON. */
export function compactText(text: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = stringEnd(text, at);
      const string = text.slice(at, end);
      if (string.includes("\\")) {
        parts.push(text.slice(from, at), JSON.stringify(JSON.parse(string)));
        from = end;
      }
      at = end;
    } else if (isSpace(code)) {
      parts.push(text.slice(from, at));
      while (isSpace(text.charCodeAt(at))) at++;
      from = at;
    } else at++;
  }
  parts.push(text.slice(from));
  return parts.join("");
}

/** What the members of an object are, as they are written; of a name that comes twice the last. `text` must be the JSON of an object. */
export function memberTexts(text: string): Map<string, string> {
  const members = new Map<string, string>();
  let depth = 0;
  let name: string | null = null;
  let from = 0;
  const close = (at: number) => {
    if (name !== null) members.set(name, text.slice(from, at).trim());
    name = null;
  };
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = stringEnd(text, at);
      if (depth === 1 && name === null) {
        name = JSON.parse(text.slice(at, end)) as string;
        from = text.indexOf(":", end) + 1;
        at = from;
      } else at = end;
      continue;
    }
    if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) {
      if (--depth === 0) close(at);
    } else if (code === 0x2c && depth === 1) close(at);
    at++;
  }
  return members;
}

/** A value with the keys of every object in order, for values whose own order is chance. */
export function sortedText(value: Json): string {
  return JSON.stringify(value, (_key, member: Json) => {
    if (typeof member !== "object" || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Behind the closing quote of the string that opens at `at`. */
function stringEnd(text: string, at: number): number {
  for (let next = at + 1; ; next++) {
    const code = text.charCodeAt(next);
    if (code === backslash) next++;
    else if (code === quote) return next + 1;
    else if (next >= text.length) return text.length;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
