// Checks values against the JSON Schemas of workflows, flows and components. Any user may have written them. So patterns are matched in
// linear time (linear-pattern.ts), and the work for one value is counted and bounded. Unknown keywords have no effect, and `format` is only
// an annotation, as JSON Schema defines it.

import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { rounded } from "../json/json-exact.ts";
import type { JsonPath } from "../json/json-position.ts";
import { sortedText } from "../json/json-text.ts";
import { type LinearPattern, linearPattern, PatternError } from "../pattern/linear-pattern.ts";
import { keywords } from "./keywords.ts";

/** A schema, with the definitions that its references point to. */
export interface SchemaPlace {
  readonly schema: Json;
  readonly defs: JsonObject;
}

export interface Violation {
  readonly path: JsonPath;
  readonly message: string;
}

/** Schemas visited, values compared and pattern states reached for one value: about 15 ms. */
const workMax = 100_000;
/** Nested or referenced schemas; the check recurses for each. */
const depthMax = 200;
/** As many as a person reads. */
const violationsMax = 20;

/** The violations with their paths, at most `violationsMax`; empty when the value is valid. */
export function violations(place: SchemaPlace, value: Json): Violation[] {
  try {
    return new Check(defsOf(place)).of(place.schema, rounded(value), [], 0);
  } catch (error) {
    if (error instanceof TooMuch) return [{ path: [], message: error.message }];
    throw error;
  }
}

/** The violations that prove that a value is not valid; empty when there is no proof. A check that takes too much work proves nothing. */
export function provenViolations(schema: JsonObject, value: Json): Violation[] {
  try {
    return new Check(defsOf({ schema, defs: {} })).of(schema, rounded(value), [], 0);
  } catch (error) {
    if (error instanceof TooMuch) return [];
    throw error;
  }
}

export function defsOf({ schema, defs }: SchemaPlace): JsonObject {
  const own = isObject(schema) ? (schema.$defs ?? schema.definitions) : null;
  return isObject(own) ? { ...defs, ...(own as JsonObject) } : defs;
}

class TooMuch extends Error {}

/** The position of a check: the value, its path, and the schema around the keyword. */
export interface At {
  readonly value: Json;
  readonly path: JsonPath;
  readonly schema: JsonObject;
  readonly depth: number;
}

export class Check {
  readonly #defs: JsonObject;
  readonly #patterns = new Map<string, LinearPattern | null>();
  #left = workMax;

  constructor(defs: JsonObject) {
    this.#defs = defs;
  }

  readonly spend = (work: number): void => {
    this.#left -= work;
    if (this.#left < 0) throw new TooMuch(`checking it takes more than ${workMax} steps, expected a simpler schema or a smaller value`);
  };

  of(schema: Json, value: Json, path: JsonPath, depth: number): Violation[] {
    this.spend(1);
    if (depth > depthMax) throw new TooMuch(`its schema is more than ${depthMax} schemas deep, or refers to itself without end`);
    if (schema === false) return [{ path, message: "there can be none" }];
    if (!isObject(schema) || (value === null && schema.nullable === true)) return [];
    const at = { value, path, schema: schema as JsonObject, depth: depth + 1 };
    const found: Violation[] = [];
    for (const name of Object.keys(schema)) {
      this.spend(1);
      const keyword = Object.hasOwn(keywords, name) ? keywords[name] : undefined;
      if (keyword !== undefined) found.push(...keyword(this, schema[name] as Json, at));
      if (found.length >= violationsMax) return found.slice(0, violationsMax);
    }
    return found;
  }

  fits(schema: Json, { value, path, depth }: At): boolean {
    return this.of(schema, value, path, depth).length === 0;
  }

  /** The target of a reference. A missing target accepts every value. */
  referenced(reference: string): Json {
    const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(reference)?.[1];
    return name !== undefined && Object.hasOwn(this.#defs, name) ? (this.#defs[name] as Json) : true;
  }

  /** An unsupported pattern has no effect. Where that matters, its reader refuses it. */
  matches(source: string, text: string): boolean {
    let pattern = this.#patterns.get(source);
    if (pattern === undefined) {
      pattern = patternOf(source);
      this.spend(source.length + (pattern?.places ?? 0));
      this.#patterns.set(source, pattern);
    }
    return pattern === null || pattern.matches(text, this.spend);
  }

  equal(one: Json, other: Json): boolean {
    if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
    return this.text(one) === this.text(other);
  }

  /** The same text for equal values. */
  text(value: Json): string {
    const text = sortedText(value);
    this.spend(1 + Math.ceil(text.length / 10));
    return text;
  }
}

function patternOf(source: string): LinearPattern | null {
  try {
    return linearPattern(source, { javascript: true });
  } catch (error) {
    if (error instanceof PatternError) return null;
    throw error;
  }
}
