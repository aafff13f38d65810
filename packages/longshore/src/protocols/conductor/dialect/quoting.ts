// How a stored value distinguishes secrets of a definition from data that looks like a secret. The value of a definition's
// `${workflow.secrets.KEY}` is inserted only when a task is handed out. Until then, inputs and variables have the text itself. Data may
// have the same text, which must never be replaced by a secret. So data is quoted in every place where both can occur:
//
//   the definition's reference    ${workflow.secrets.KEY}        an odd number of $: half of those before the last one are data
//   data                          $${workflow.secrets.KEY}       an even number of $: half of them are the data's own
//
// Inputs of tasks, variables, and inputs of runs whose settings have `quotedInput` are quoted. Everything else is data as it was received.
// A value without the words `workflow.secrets.` does not change when it is quoted.

import { isScalar, type Json, setOwn } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import { javaText } from "./java-text.ts";

/** The text behind the dollar sign of a reference. */
const opening = "{workflow.secrets.";

/** Data in quoted form: none of it reads as a reference. */
export function quote(value: Json): Json {
  return mapTexts(value, quoteText);
}

/** Unquotes a value, and leaves references as their text: for display, and for all decisions here. */
export function unquote(value: Json): Json {
  return mapTexts(value, (text) => changeDollars(text, (count) => count - Math.floor(count / 2)));
}

/** Whether a JSON text may contain a quoted value that differs from its unquoted form. */
export function hasQuoted(json: string): boolean {
  return json.includes(`$$${opening}`);
}

/** The same for JSON text. */
export function unquoteJson(json: string): string {
  return json.includes(opening) ? writeExact(unquote(parseExact(json) as Json)) : json;
}

export function quoteText(text: string): string {
  return changeDollars(text, (count) => 2 * count);
}

/**
 * A quoted value inside a text, as the real server writes it: `{a=1, b=[x, null]}`. Names of members are data. They are quoted only here,
 * because in other places they are never filled in.
 */
export function quotedAsText(value: Json): string {
  const text = javaText(value);
  return text.includes(opening) ? javaText(withQuotedNames(value)) : text;
}

/** A part of a quoted text: plain text, or the name that a reference has between `secrets.` and the brace. */
export type Segment = string | { readonly secret: string };

/** The parts of a quoted text. Plain parts are unquoted. */
export function segmentsOf(quoted: string): Segment[] {
  const pieces = quoted.split(opening);
  const segments: Segment[] = [];
  let plain = "";
  pieces.forEach((piece, at) => {
    const isReference = at > 0 && dollarsAtEnd(pieces[at - 1] as string) % 2 === 1;
    const name = isReference ? nameAtStart(piece) : null;
    if (name !== null) {
      segments.push(plain, { secret: name });
      plain = "";
    } else if (at > 0) plain += (isReference ? "$" : "") + opening;
    const text = name === null ? piece : piece.slice(name.length + 1);
    plain += at === pieces.length - 1 ? text : text.slice(0, text.length - Math.ceil(dollarsAtEnd(text) / 2));
  });
  return [...segments, plain].filter((segment) => segment !== "");
}

/** Joins plain and quoted texts to one quoted text. Two texts without a reference never form one together. */
export function joinQuoted(parts: readonly { readonly text: string; readonly quoted: boolean }[]): string {
  const joined = parts.map(({ text }) => text).join("");
  if (!joined.includes(opening)) return joined;
  let whole = "";
  let plain = "";
  for (const { text, quoted } of parts) {
    for (const segment of quoted ? segmentsOf(text) : [text]) {
      if (typeof segment === "string") plain += segment;
      else {
        whole += quoteText(plain) + "$".repeat(dollarsAtEnd(plain)) + referenceTo(segment.secret);
        plain = "";
      }
    }
  }
  return whole + quoteText(plain);
}

/** The text of a reference; null for a name that contains the end of a reference. */
export function quotedReference(name: string): string | null {
  return name === "" || /[{}]/.test(name) ? null : referenceTo(name);
}

function referenceTo(name: string): string {
  return `$${opening}${name}}`;
}

/** Null when the closing brace of a reference is missing. */
function nameAtStart(text: string): string | null {
  const end = text.indexOf("}");
  const name = text.slice(0, Math.max(end, 0));
  return name === "" || name.includes("{") ? null : name;
}

/** `text` with the dollar signs before each opening changed by `change`. */
function changeDollars(text: string, change: (count: number) => number): string {
  if (!text.includes(opening)) return text;
  const pieces = text.split(opening);
  const last = pieces.pop() as string;
  const changed = pieces.map((piece) => {
    const count = dollarsAtEnd(piece);
    return piece.slice(0, piece.length - count) + "$".repeat(change(count));
  });
  return [...changed, last].join(opening);
}

function dollarsAtEnd(text: string): number {
  let at = text.length;
  while (at > 0 && text[at - 1] === "$") at--;
  return text.length - at;
}

function withQuotedNames(value: Json): Json {
  if (isScalar(value)) return value;
  if (Array.isArray(value)) return value.map(withQuotedNames);
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) setOwn(copy, quoteText(key), withQuotedNames(value[key] as Json));
  return copy;
}

/** Returns the same value, not a copy, when no text changes. */
function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === "string") return change(value);
  if (isScalar(value)) return value;
  if (Array.isArray(value)) {
    let copy: Json[] | undefined;
    for (const [at, item] of value.entries()) {
      const changed = mapTexts(item, change);
      if (changed === item) continue;
      copy ??= [...value];
      copy[at] = changed;
    }
    return copy ?? value;
  }
  let copy: { [key: string]: Json } | undefined;
  for (const key of Object.keys(value)) {
    const changed = mapTexts(value[key] as Json, change);
    if (changed === value[key]) continue;
    copy ??= { ...value };
    setOwn(copy, key, changed);
  }
  return copy ?? value;
}
