// Each form that the type promises is what `toJson` returns for such a value.

import { expect, expectTypeOf, it } from "vitest";
import type { Json } from "./json.ts";
import type { Jsonify } from "./jsonify.ts";
import { toJson } from "./to-json.ts";

/** The value as its reader receives it. */
const stored = <T>(value: T) => JSON.parse(JSON.stringify(toJson(value))) as Jsonify<T>;

interface Tree {
  readonly name: string;
  readonly children: Tree[];
  readonly parent?: Tree;
}

class Money {
  readonly cents: number = 5;
  text(): string {
    return `${this.cents} ct`;
  }
}

it("a date becomes a string, also inside of objects and lists", () => {
  const value = stored({ at: new Date(0), list: [{ at: new Date(0) }] });
  expectTypeOf(value).toEqualTypeOf<{ at: string; list: { at: string }[] }>();
  expect(value).toEqual({ at: "1970-01-01T00:00:00.000Z", list: [{ at: "1970-01-01T00:00:00.000Z" }] });
});

it("maps, sets and bytes become objects, lists and text", () => {
  const value = stored({ map: new Map([["a", new Date(0)]]), set: new Set([1]), bytes: new Uint8Array([1]) });
  expectTypeOf(value).toEqualTypeOf<{ map: { [key: string]: string }; set: number[]; bytes: string }>();
  expect(value).toEqual({ map: { a: "1970-01-01T00:00:00.000Z" }, set: [1], bytes: "AQ==" });
});

it("undefined becomes null, except as a field", () => {
  const list: (number | undefined)[] = [undefined];
  expectTypeOf(stored(list)).toEqualTypeOf<(number | null)[]>();
  expect(stored(list)).toEqual([null]);
  expectTypeOf(stored(undefined)).toBeNull();
  expect(stored(undefined)).toBeNull();
  expectTypeOf<Jsonify<{ a?: Date }>>().toEqualTypeOf<{ a?: string }>();
});

it("objects lose their methods", () => {
  expectTypeOf(stored(new Money())).toEqualTypeOf<{ readonly cents: number }>();
  expect(stored(new Money())).toEqual({ cents: 5 });
});

it("a type that JSON can hold stays the same", () => {
  expectTypeOf<Jsonify<{ a: 1; b: "x" | null; c: [number, string] }>>().toEqualTypeOf<{ a: 1; b: "x" | null; c: [number, string] }>();
  expectTypeOf<Jsonify<Json>>().toEqualTypeOf<Json>();
  expectTypeOf<Jsonify<unknown>>().toBeUnknown();
  // biome-ignore lint/suspicious/noExplicitAny: this is the case under test.
  expectTypeOf<Jsonify<any>>().toBeAny();
  expectTypeOf<Jsonify<Tree>>().toExtend<Tree>();
  expectTypeOf<Tree>().toExtend<Jsonify<Tree>>();
});
