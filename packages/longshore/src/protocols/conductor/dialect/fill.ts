// Replaces compiled expressions by their values.

import { type Json, setOwn } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { payloadBytesMax } from "../../../core/payload-size.ts";
import { textSize } from "../../../core/text-size.ts";
import { type Compiled, type Expression, type Lookup, lookupOf, secretPrefix } from "./expression.ts";
import { Budget, readPath } from "./json-path/evaluate.ts";
import type { Path } from "./json-path/path.ts";
import { PathError } from "./json-path/path-error.ts";
import { joinQuoted, quote, quotedAsText, unquote } from "./quoting.ts";

/** What expressions may read. */
export interface Context {
  /**
   * An entry of the context document: `workflow`, or a task's reference name. Undefined when it has not been loaded, null when there is
   * none. `field` is the only field of the entry that will be read; null when all of them may be read.
   */
  entry(name: string, field: string | null): Json | undefined;
  /** Whether that field of an entry is unquoted data. Everything else that an entry or the document returns is quoted (quoting.ts). */
  isData(name: string, field: string | null): boolean;
  /** Every entry, for paths over the whole document. Undefined when not all have been loaded. */
  document(): Json | undefined;
  environment(name: string): string | null;
  taskId: string | null;
  /** Called with the number of values that were visited. */
  looked?(values: number): void;
}

/** Maximum size of a filled-in value, as for a task's input: many references to one large output would fill the memory. */
export const filledCharsMax = payloadBytesMax;

/**
 * The quoted value, or the names of entries that must be loaded first, or the reason why it cannot be filled in. An empty list means the
 * whole document.
 */
export type Filled = { value: Json } | { needs: readonly string[] } | { failed: string };

export function fillValue(compiled: Compiled, context: Context): Filled {
  if (compiled.kind === "constant") return { value: compiled.value };
  const filling = new Filling(context);
  try {
    const value = filling.fill(compiled);
    return filling.missing === null ? { value } : { needs: [...filling.missing] };
  } catch (error) {
    if (error instanceof PathError) return { failed: error.message };
    throw error;
  } finally {
    context.looked?.(filling.looked);
  }
}

class Filling {
  readonly #context: Context;
  /** One budget for all expressions of a value: many small ones cost as much as one large one. */
  readonly #budget = new Budget();
  #chars = 0;
  missing: Set<string> | null = null;

  constructor(context: Context) {
    this.#context = context;
  }

  get looked(): number {
    return this.#budget.spent;
  }

  fill(compiled: Compiled): Json {
    switch (compiled.kind) {
      case "constant":
        return compiled.value;
      case "expression":
        return this.#value(compiled.expression);
      case "text":
        return this.#text(compiled.parts);
      case "list":
        return compiled.items.map((item) => this.fill(item));
      case "object": {
        const filled: { [key: string]: Json } = {};
        for (const [key, part] of compiled.entries) setOwn(filled, key, this.fill(part));
        return filled;
      }
    }
  }

  #text(parts: readonly (string | Expression)[]): string {
    return joinQuoted(
      parts.map((part) =>
        typeof part === "string" ? { text: part, quoted: false } : { text: this.#asText(this.#value(part)), quoted: true },
      ),
    );
  }

  /** Objects and lists are written as the real server writes them. */
  #asText(value: Json): string {
    return typeof value === "string" ? value : quotedAsText(value);
  }

  #value(expression: Expression): Json {
    if (expression.kind === "blank") return "";
    if (expression.kind === "path") return this.#charge(this.#look(expression.lookup));
    const inside = unquote(this.#text(expression.inside)) as string;
    if (inside.trim() === "") return "";
    const lookup = lookupOf(inside);
    // Data may choose among secrets only when the definition requires a secret; data never decides that a secret is required.
    if (lookup.kind === "secret" && !asksForSecret(expression)) return null;
    return this.#charge(this.#look(lookup));
  }

  #look(lookup: Lookup): Json {
    switch (lookup.kind) {
      case "secret":
        return lookup.reference;
      case "task-id":
        return this.#context.taskId;
      case "unreadable":
        return null;
      case "environment":
        return quote(this.#environment(lookup.name, lookup.path));
      case "document":
        return this.#read(lookup.path, this.#context.document(), null);
      case "entry":
        return this.#entry(lookup.name, lookup.path);
    }
  }

  #entry(name: string, path: Path): Json {
    const field = fieldOf(path);
    const found = this.#read(path, this.#context.entry(name, field), name);
    return this.#context.isData(name, field) ? quote(found) : found;
  }

  #read(path: Path, from: Json | undefined, name: string | null): Json {
    if (from !== undefined) return readPath(path, from, this.#budget);
    this.missing ??= new Set();
    if (name !== null) this.missing.add(name);
    return null;
  }

  #environment(name: string, path: Path | null): Json {
    const text = this.#context.environment(name);
    if (text === null || path === null) return text;
    try {
      return readPath(path, parseExact(text) as Json, this.#budget);
    } catch (error) {
      if (error instanceof SyntaxError) return null;
      throw error;
    }
  }

  #charge(value: Json): Json {
    this.#chars += textSize(value, filledCharsMax);
    if (this.#chars > filledCharsMax) throw new PathError(`the value filled in is larger than ${filledCharsMax} characters`);
    return value;
  }
}

function asksForSecret({ inside: [first] }: Expression & { kind: "nested" }): boolean {
  return typeof first === "string" && first.startsWith(secretPrefix);
}

function fieldOf(path: Path): string | null {
  const [first] = path.steps;
  return first?.kind === "child" ? first.name : null;
}
