import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deeperThan, isObject, jsonDepthMax } from "./json.ts";

const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);

describe("json", () => {
  it("finds texts that nest deeper than the limit, and only those", () => {
    expect(deeperThan(nested(jsonDepthMax))).toBe(false);
    expect(deeperThan(nested(jsonDepthMax + 1))).toBe(true);
    expect(deeperThan('{"a":[{"b":1}]}', 3)).toBe(false);
    expect(deeperThan('{"a":[{"b":1}]}', 2)).toBe(true);
  });

  it("does not count brackets inside texts", () => {
    expect(deeperThan(JSON.stringify(`${"[{".repeat(500)}\\"`))).toBe(false);
    expect(deeperThan('"\\"[[[[[["', 3)).toBe(false);
    expect(deeperThan('["\\\\",[[1]]]', 2)).toBe(true);
  });

  it("agrees with the depth of the parsed value", () => {
    const depth = (value: unknown): number =>
      typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depth)) : 0;
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.integer({ min: 0, max: 7 }), (value, max) => {
        expect(deeperThan(JSON.stringify(value), max)).toBe(depth(value) > max);
      }),
    );
  });

  it("survives a text of opening brackets only", () => {
    expect(deeperThan("[".repeat(5_000_000))).toBe(true);
  });

  it("distinguishes objects from arrays and null", () => {
    expect([{}, { a: 1 }].every(isObject)).toBe(true);
    expect([null, [], "a", 1, undefined].some(isObject)).toBe(false);
  });
});
