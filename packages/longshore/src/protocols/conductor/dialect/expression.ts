// `${...}` in a definition. A value is compiled once: its texts become parts, its paths are parsed, and the names that it reads are known.
// Filling in the compiled value only visits its parts. Filled-in values are never searched for further expressions.

import { isScalar, type Json } from "../../../core/json/json.ts";
import { parsePath } from "./json-path/parse.ts";
import type { Path } from "./json-path/path.ts";
import { PathError } from "./json-path/path-error.ts";
import { quotedReference, quoteText } from "./quoting.ts";

/** A value with expressions in it. Constants are quoted; the plain parts of a text are not. */
export type Compiled =
  | { readonly kind: "constant"; readonly value: Json }
  /** A single expression: keeps the type of its value. */
  | { readonly kind: "expression"; readonly expression: Expression }
  | { readonly kind: "text"; readonly parts: readonly (string | Expression)[] }
  | { readonly kind: "list"; readonly items: readonly Compiled[] }
  | { readonly kind: "object"; readonly entries: readonly (readonly [string, Compiled])[] };

export type Expression =
  | { readonly kind: "blank" }
  | { readonly kind: "path"; readonly lookup: Lookup }
  /** The text between the braces may itself contain expressions. */
  | { readonly kind: "nested"; readonly inside: readonly (string | Expression)[] };

/** What one expression refers to. */
export type Lookup =
  /** Stays in the value as a reference until a task is handed out (see quoting.ts). */
  | { readonly kind: "secret"; readonly reference: string }
  | { readonly kind: "environment"; readonly name: string; readonly path: Path | null }
  | { readonly kind: "task-id" }
  | { readonly kind: "entry"; readonly name: string; readonly path: Path }
  /** A path over the whole document, such as `$..x`. */
  | { readonly kind: "document"; readonly path: Path }
  /** Not a path, so its value is null. It is the same in Conductor, which refuses most of them when a definition is registered. */
  | { readonly kind: "unreadable"; readonly text: string; readonly reason: string };

export const secretPrefix = "workflow.secrets.";
const environmentPrefix = "workflow.env.";

export function compileValue(value: Json): Compiled {
  if (typeof value === "string") return compileText(value);
  if (Array.isArray(value)) {
    const items = value.map(compileValue);
    return items.every((item) => item.kind === "constant") ? { kind: "constant", value } : { kind: "list", items };
  }
  if (isScalar(value)) return { kind: "constant", value };
  const entries = Object.entries(value).map(([key, part]) => [key, compileValue(part)] as const);
  return entries.every(([, part]) => part.kind === "constant") ? { kind: "constant", value } : { kind: "object", entries };
}

function compileText(text: string): Compiled {
  if (!text.includes("${")) return { kind: "constant", value: text };
  const parts = partsOf(text);
  const [only] = parts;
  if (parts.length === 1 && typeof only === "object") return { kind: "expression", expression: only };
  // A definition writes `$${` for a text that is not an expression.
  if (parts.every((part) => typeof part === "string")) return { kind: "constant", value: quoteText(parts.join("")) };
  return { kind: "text", parts };
}

function partsOf(text: string): (string | Expression)[] {
  const closings = closingBraces(text);
  const parts: (string | Expression)[] = [];
  let plain = "";
  for (let at = 0; at < text.length; ) {
    const close = text.startsWith("${", at) ? closings.get(at + 1) : undefined;
    if (text.startsWith("$${", at)) {
      plain += "${";
      at += 3;
    } else if (close !== undefined) {
      if (plain !== "") parts.push(plain);
      plain = "";
      parts.push(expressionOf(text.slice(at + 2, close)));
      at = close + 1;
    } else plain += text[at++];
  }
  if (plain !== "") parts.push(plain);
  return parts;
}

/** For each opening brace, the position of its closing brace. As in Conductor, braces are counted in any context. */
function closingBraces(text: string): Map<number, number> {
  const closings = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "{") open.push(at);
    else if (text[at] === "}") {
      const begin = open.pop();
      if (begin !== undefined) closings.set(begin, at);
    }
  }
  return closings;
}

/** How deep expressions may be nested; the compiler calls itself for each. */
const nestingMax = 20;

function expressionOf(inside: string): Expression {
  if (inside.trim() === "") return { kind: "blank" };
  if (!inside.includes("${")) return { kind: "path", lookup: lookupOf(inside) };
  if (nestingOf(inside) >= nestingMax)
    return { kind: "path", lookup: { kind: "unreadable", text: inside, reason: `more than ${nestingMax} expressions inside each other` } };
  return { kind: "nested", inside: partsOf(inside) };
}

function nestingOf(text: string): number {
  let deepest = 0;
  let deep = 0;
  for (const char of text) {
    if (char === "{") deepest = Math.max(deepest, ++deep);
    else if (char === "}") deep--;
  }
  return deepest;
}

/** What the text between the braces refers to. */
export function lookupOf(text: string): Lookup {
  const trimmed = text.trim();
  if (trimmed.startsWith(secretPrefix)) return secretLookup(text);
  if (trimmed === "CPEWF_TASK_ID") return { kind: "task-id" };
  try {
    if (trimmed.startsWith(environmentPrefix)) return environmentLookup(trimmed.slice(environmentPrefix.length));
    const path = parsePath(trimmed);
    const [first, ...rest] = path.steps;
    if (first?.kind !== "child") return { kind: "document", path };
    return { kind: "entry", name: first.name, path: { ...path, steps: rest } };
  } catch (error) {
    if (error instanceof PathError) return { kind: "unreadable", text: trimmed, reason: error.message };
    throw error;
  }
}

/**
 * A secret must have a form that quoting.ts recognises in data. If leading blanks were allowed, a definition that comes from data could
 * read secrets.
 */
function secretLookup(text: string): Lookup {
  if (!text.startsWith(secretPrefix)) return { kind: "unreadable", text, reason: "a secret has no blanks before `workflow.secrets.`" };
  const reference = quotedReference(text.slice(secretPrefix.length).trimEnd());
  return reference === null ? { kind: "unreadable", text, reason: "the name of a secret has no braces" } : { kind: "secret", reference };
}

function environmentLookup(text: string): Lookup {
  const dot = text.indexOf(".");
  if (dot === -1) return { kind: "environment", name: text, path: null };
  return { kind: "environment", name: text.slice(0, dot), path: parsePath(text.slice(dot + 1)) };
}

/** The entries that expressions read, as far as they are known before the expressions are filled in. */
export interface Reads {
  /** Entries by name. A name that is itself an expression is not among them. */
  readonly names: ReadonlySet<string>;
  readonly document: boolean;
  /** Invalid expressions, with the reason. */
  readonly unreadable: readonly string[];
}

export function readsOf(compiled: Compiled): Reads {
  const names = new Set<string>();
  const unreadable: string[] = [];
  let document = false;
  for (const expression of expressionsOf(compiled)) {
    if (expression.kind !== "path") continue;
    const { lookup } = expression;
    if (lookup.kind === "entry") names.add(lookup.name);
    else if (lookup.kind === "document") document = true;
    else if (lookup.kind === "unreadable") unreadable.push(lookup.reason);
  }
  return { names, document, unreadable };
}

/** Every expression in a value, including those inside others. */
export function* expressionsOf(compiled: Compiled): Generator<Expression> {
  if (compiled.kind === "expression") yield* unfold(compiled.expression);
  else if (compiled.kind === "text") for (const part of compiled.parts) yield* unfold(part);
  else if (compiled.kind === "list") for (const item of compiled.items) yield* expressionsOf(item);
  else if (compiled.kind === "object") for (const [, part] of compiled.entries) yield* expressionsOf(part);
}

function* unfold(part: string | Expression): Generator<Expression> {
  if (typeof part === "string") return;
  yield part;
  if (part.kind !== "nested") return;
  for (const inner of part.inside) yield* unfold(inner);
  // The name before the first expression inside is known already: `${a.output.${b.output.k}}` reads `a`.
  const name = /^\s*(?:\$\.)?([^.[\]()\s,'"]+)[.[]/.exec(typeof part.inside[0] === "string" ? part.inside[0] : "")?.[1];
  if (name !== undefined) yield { kind: "path", lookup: { kind: "entry", name, path: { from: "$", steps: [], definite: true } } };
}
