// The values of a plan: JSON with references, and computed values. References are replaced, and values computed, when a step starts.

import { isScalar, type Json, setOwn } from "../../../core/json/json.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Plan, Template } from "../../../engine/run/plan.ts";
import { isWrapped, type Reference, referenceOf, type Value } from "./source.ts";

/** What a computed value may read. */
export interface Reading {
  readonly plan: Plan;
  readonly scope: Scope;
  /** The value with its references replaced. */
  fill(value: Value): Json;
  /** The output of a step; null, and requested, when it has not been loaded. */
  output(node: number): Json;
}

/** A value that is computed, and does not only have references. */
export abstract class Computed {
  /** Throws `Unresolved` when there is no such value. */
  abstract from(reading: Reading): Json;
}

/** The reason why a value cannot be computed, as text for people. */
export class Unresolved extends Error {}

export function resolve(plan: Plan, template: Template, scope: Scope): Resolved {
  const needs: number[] = [];
  const output = (node: number) => {
    const value = scope.output(node);
    if (value === undefined) needs.push(node);
    return value ?? null;
  };
  const fill = (value: Value) => filled(value, (reference) => lookUp(plan, reference, scope, output));
  try {
    const value = template instanceof Computed ? template.from({ plan, scope, fill, output }) : fill(template as Value);
    return needs.length > 0 ? { needs } : { value };
  } catch (error) {
    if (!(error instanceof Unresolved)) throw error;
    // A value that has not been loaded is null here.
    return needs.length > 0 ? { needs } : { failed: error.message };
  }
}

/** The value with each reference replaced by what `find` returns. */
export function filled(value: Value, find: (reference: Reference) => Json): Json {
  const reference = referenceOf(value);
  if (reference !== null) return find(reference);
  if (Array.isArray(value)) return value.map((item) => filled(item, find));
  if (isScalar(value)) return value;
  const fields = isWrapped(value) ? value.$value : value;
  const made: { [key: string]: Json } = {};
  for (const key of Object.keys(fields)) setOwn(made, key, filled(fields[key] as Value, find));
  return made;
}

function lookUp(plan: Plan, reference: Reference, scope: Scope, output: (node: number) => Json): Json {
  if (reference.step === undefined) return partOf(scope.input(), reference, "the run's input");
  return partOf(output(plan.index.get(reference.step) as number), reference, `the output of step ${reference.step}`);
}

/**
 * The part of a value that a reference names. A step that was skipped or failed has no output. If a step that refers to it starts
 * nevertheless, it reads null for any path into this output.
 */
export function partOf(whole: Json, { path }: Reference, from: string): Json {
  if (whole === null) return null;
  let value: Json = whole;
  path.forEach((key, depth) => {
    const own = typeof value === "object" && value !== null && Object.hasOwn(value, key);
    if (!own) throw new Unresolved(`${from} has nothing at ${JSON.stringify(path.slice(0, depth + 1).join("."))}`);
    value = (value as { [key: string]: Json })[key] as Json;
  });
  return value;
}
