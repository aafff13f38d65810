// References: placeholders in a graph for values that exist only when the workflow runs, and the JSON form in which they are stored.

import { LongshoreError } from "./core/errors.ts";
import type { Json } from "./core/json/json.ts";
import type { Reference, Value } from "./protocols/longshore/dialect/source.ts";

declare const stands: unique symbol;

/** A placeholder for a value that will exist when the workflow runs. Its fields are references too. */
export type Ref<T> = { readonly [stands]: T } & (T extends readonly (infer Item)[]
  ? { readonly [index: number]: Ref<Item> }
  : T extends object
    ? { readonly [Key in keyof T]-?: Ref<Exclude<T[Key], undefined>> }
    : unknown);

/** A value that may contain references instead of any of its parts. */
export type Arg<T> =
  | Ref<T>
  | (T extends readonly (infer Item)[] ? readonly Arg<Item>[] : T extends object ? { readonly [Key in keyof T]: Arg<T[Key]> } : T);

/** The type of a builder's result after every reference in it is resolved. */
// biome-ignore lint/suspicious/noConfusingVoidType: a builder that returns nothing has exactly this result.
export type Known<R> = [R] extends [void]
  ? null
  : R extends { readonly [stands]: infer T }
    ? T
    : R extends readonly (infer Item)[]
      ? Known<Item>[]
      : R extends object
        ? { [Key in keyof R]: Known<R[Key]> }
        : R;

const placeOf = Symbol("longshore.reference");

/** Every property of a reference is a reference one level deeper. A reference can only be passed on; its value cannot be read. */
export function reference(place: Reference): object {
  return new Proxy(
    {},
    {
      get(_, key) {
        if (key === placeOf) return place;
        // With a `then`, an `await` of the reference would never end. A text made of a reference would always be wrong, so it is refused.
        if (key === "then") return undefined;
        if (typeof key === "symbol" || key === "toJSON") return refuse(place, impossible.get(key) ?? "it cannot be looked at");
        return reference({ ...place, path: [...place.path, /^(0|[1-9]\d*)$/.test(key) ? Number(key) : key] });
      },
      has: (_, key) => key === placeOf,
      ownKeys: () => refuse(place, "its fields cannot be listed"),
    },
  );
}

/** What a program tries to do when it reads these properties of a reference. */
const impossible: ReadonlyMap<string | symbol, string> = new Map<string | symbol, string>([
  [Symbol.toPrimitive, "no text or number can be made of it"],
  [Symbol.iterator, "its items cannot be gone through"],
  ["toJSON", "no JSON can be made of it"],
]);

function refuse(place: Reference, what: string): never {
  const where = [place.step ?? (place.item === undefined ? "input" : "item"), ...place.path].join(".");
  throw new LongshoreError(
    "LONGSHORE_BAD_DEFINITION",
    `${where} is a placeholder for a value that exists only when the workflow runs: ${what} while it is defined. Do that in a task.`,
  );
}

export function isReference(value: unknown): value is { [placeOf]: Reference } {
  return typeof value === "object" && value !== null && placeOf in value;
}

export function stepOf(ref: unknown, id: string): string {
  const step = isReference(ref) ? ref[placeOf].step : undefined;
  if (step === undefined)
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", `"after" of step ${id} must list results of earlier steps.`, {
      detail: { field: `steps.${id}.after` },
    });
  return step;
}

export function toValue(value: unknown): Value {
  if (isReference(value)) {
    const { path, ...from } = value[placeOf];
    return { $ref: { ...from, path: [...path] } };
  }
  if (Array.isArray(value)) return value.map(toValue);
  if (typeof value !== "object" || value === null) return value === undefined ? null : (value as Json);
  if ("toJSON" in value) return JSON.parse(JSON.stringify(value)) as Json;
  const made: { [key: string]: Json } = {};
  for (const [key, inner] of Object.entries(value)) if (inner !== undefined) made[key] = toValue(inner);
  const keys = Object.keys(made);
  return keys.length === 1 && (keys[0] === "$ref" || keys[0] === "$value") ? { $value: made } : made;
}
