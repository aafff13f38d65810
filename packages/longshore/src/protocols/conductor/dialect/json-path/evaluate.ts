// Evaluates a JSONPath in a document. Every visited value is counted, also those that functions, slices and comparisons visit. So no
// definition can keep the server busy for long.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { compare } from "./compare.ts";
import { callFunction } from "./functions.ts";
import type { Operand, Path, Step, Test } from "./path.ts";
import { PathError } from "./path-error.ts";

/**
 * Maximum number of visits for one value with its expressions: up to 0.3 us each, and 20 ms together. A filter that scans the document for
 * each item reaches this limit.
 */
const visitsMax = 65_536;

/** Counts the work of one evaluation. */
export class Budget {
  #left: number;
  readonly #visits: number;

  constructor(visits: number = visitsMax) {
    this.#visits = visits;
    this.#left = visits;
  }

  /** The number of values that were visited so far. */
  get spent(): number {
    return this.#visits - this.#left;
  }

  /** Throws a PathError when the limit is exceeded. */
  readonly spend = (visits: number): void => {
    this.#left -= visits;
    if (this.#left < 0) throw new PathError(`the path looks at more than ${visitsMax} values`);
  };
}

/**
 * The value of `path` in `document`: a value for a definite path, a list for any other. Null for a definite path without a value, as in
 * Conductor, and for a function that cannot be applied.
 */
export function readPath(path: Path, document: Json, budget: Budget = new Budget()): Json {
  return new Walk(document, budget).read(path, document) ?? null;
}

class Walk {
  readonly #document: Json;
  readonly #budget: Budget;

  constructor(document: Json, budget: Budget) {
    this.#document = document;
    this.#budget = budget;
  }

  /** Undefined when a definite path has no value. */
  read(path: Path, item: Json): Json | undefined {
    let found: Json[] = [path.from === "$" ? this.#document : item];
    // From the first step on that may find several values, the result is a list.
    let single = true;
    path.steps.forEach((step, at) => {
      if (step.kind === "function") {
        const value = callFunction(step.name, single ? found[0] : found, this.#arguments(step.args, item), this.#budget.spend);
        found = value === undefined ? [] : [value];
        single = true;
        return;
      }
      const last = at === path.steps.length - 1;
      found = found.flatMap((value) => this.#take(step, value, last));
      single &&= step.kind === "child" || step.kind === "index" || (step.kind === "children" && last);
    });
    return single ? found[0] : found;
  }

  #take(step: Exclude<Step, { kind: "function" }>, value: Json, last: boolean): Json[] {
    this.#budget.spend(1);
    switch (step.kind) {
      case "child":
        return isObject(value) && Object.hasOwn(value, step.name) ? [value[step.name] as Json] : [];
      case "children":
        this.#budget.spend(step.names.length);
        return pick(step.names, value, last);
      case "index":
        return Array.isArray(value) ? at(value, step.at) : [];
      case "indexes":
        this.#budget.spend(step.at.length);
        return Array.isArray(value) ? step.at.flatMap((index) => at(value, index)) : [];
      case "slice":
        return Array.isArray(value) ? this.#slice(value, step.from, step.to) : [];
      case "each":
        return this.#parts(value);
      case "filter":
        // A filter tests an object as a whole, and a list item by item.
        return (Array.isArray(value) ? value : isObject(value) ? [value] : []).filter((item) => this.#holds(step.test, item));
      case "deep":
        return this.#deep(step.step, value, last);
    }
  }

  /** Depth first, each value before its members. Uses a list instead of recursion: a document may be deeper than the stack. */
  #deep(step: Step, from: Json, last: boolean): Json[] {
    const found: Json[] = [];
    const open: Json[] = [from];
    for (let value = open.pop(); value !== undefined; value = open.pop()) {
      if (step.kind !== "function") for (const one of this.#take(step, value, last)) found.push(one);
      const parts = this.#parts(value);
      for (let index = parts.length - 1; index >= 0; index--) open.push(parts[index] as Json);
    }
    return found;
  }

  #slice(list: readonly Json[], from: number | null, to: number | null): Json[] {
    const slice = list.slice(from ?? 0, to ?? undefined);
    this.#budget.spend(slice.length);
    return slice;
  }

  #parts(value: Json): Json[] {
    const parts = Array.isArray(value) ? value : isObject(value) ? Object.values(value as JsonObject) : [];
    this.#budget.spend(parts.length);
    return parts;
  }

  #holds(test: Test, item: Json): boolean {
    this.#budget.spend(1);
    switch (test.kind) {
      case "and":
        return test.tests.every((one) => this.#holds(one, item));
      case "or":
        return test.tests.some((one) => this.#holds(one, item));
      case "not":
        return !this.#holds(test.test, item);
      case "truth":
        return test.value;
      case "exists": {
        const found = this.read(test.path, item);
        return test.path.definite || !Array.isArray(found) ? found !== undefined : found.length > 0;
      }
      case "compare": {
        if (test.operator === "=~") return this.#matches(test.left, test.right, item);
        return compare(test.operator, this.#operand(test.left, item), this.#operand(test.right, item), this.#budget.spend);
      }
    }
  }

  #matches(left: Operand, right: Operand, item: Json): boolean {
    const [pattern, other] = left.kind === "pattern" ? [left, right] : [right, left];
    const value = this.#operand(other, item);
    if (pattern.kind !== "pattern" || typeof value !== "string") return false;
    return pattern.pattern.matches(value, this.#budget.spend);
  }

  #operand(operand: Operand, item: Json): Json | undefined {
    if (operand.kind === "path") return this.read(operand.path, item);
    return operand.kind === "value" ? operand.value : undefined;
  }

  #arguments(args: readonly Operand[], item: Json): Json[] {
    const values = args.map((arg) => this.#operand(arg, item) ?? []);
    for (const value of values) this.#budget.spend(Array.isArray(value) ? value.length : 1);
    return values.flat() as Json[];
  }
}

function at(list: readonly Json[], index: number): Json[] {
  const value = list[index < 0 ? list.length + index : index];
  return value === undefined ? [] : [value];
}

function pick(names: readonly string[], value: Json, last: boolean): Json[] {
  if (!isObject(value)) return [];
  const present = names.filter((name) => Object.hasOwn(value, name));
  if (!last) return present.map((name) => value[name] as Json);
  return [Object.fromEntries(present.map((name) => [name, value[name] as Json]))];
}
