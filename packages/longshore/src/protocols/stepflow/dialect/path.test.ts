import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../core/json/json.ts";
import { follow, parsePath, pathText } from "./path.ts";

describe("a path", () => {
  it.each<[string, (string | number)[]]>([
    ["", []],
    ["$", []],
    [" $ ", []],
    ["name", ["name"]],
    ["a.b[0]", ["a.b[0]"]],
    ["$.a", ["a"]],
    ["$.a.b[0]['x y']", ["a", "b", 0, "x y"]],
    ['$["a.b"].c', ["a.b", "c"]],
    ["$[3]", [3]],
    ["$[ 3 ].a", [3, "a"]],
    ["$..a.", ["a"]],
    ["$.ü ö", ["ü ö"]],
  ])("%j leads to %j", (text, path) => {
    expect(parsePath(text)).toEqual({ path });
  });

  it.each([
    ["$a", 'has "a" where a dot or a bracket is expected'],
    ["$[0]a", 'has "a" where a dot or a bracket is expected'],
    ["$.a[0", "is not closed"],
    ["$.a['x", "is not closed"],
    ["$.a[x]", "is neither a number nor a quoted name"],
    ["$[-1]", "is neither a number nor a quoted name"],
    ["$[1234567890]", "is neither a number nor a quoted name"],
    [`$${".a".repeat(101)}`, "at most 100 are allowed"],
  ])("%j is refused", (text, fault) => {
    expect(parsePath(text)).toEqual({ fault: expect.stringContaining(fault) });
  });

  it("is written so that it can be read again", () => {
    for (const path of [[], ["a", 0, "b"], ["a.b", "[c]", ""], ["x y"]]) expect(parsePath(pathText(path))).toEqual({ path });
  });

  it("is read or refused, for any text, and what was read can be written and read again", () => {
    const piece = fc.constantFrom("$", ".", "[", "]", "'", '"', "0", "12", "a", "x y", "\\", "", " ", "-1", "['a']", '["b"]', "__proto__");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const parsed = parsePath(pieces.join(""));
        if ("fault" in parsed) {
          expect(parsed.fault).not.toBe("");
          return;
        }
        for (const document of [null, {}, [], { a: [{ b: 1 }] }] as Json[]) expect(() => follow(document, parsed.path)).not.toThrow();
        const names = parsed.path.filter((part) => typeof part === "string");
        // A name with a quote or a backslash is written in JSON's way, which a path does not undo.
        if (names.every((name) => !/["\\]/.test(name) && name === name.trim())) expect(parsePath(pathText(parsed.path))).toEqual(parsed);
      }),
      { numRuns: 2_000 },
    );
  });

  it("finds a value, and reports where it stopped", () => {
    const value = { a: [{ b: null }], "x.y": 1 };
    expect(follow(value, [])).toEqual({ value });
    expect(follow(value, ["a", 0, "b"])).toEqual({ value: null });
    expect(follow(value, ["x.y"])).toEqual({ value: 1 });
    for (const missing of [["b"], ["a", 1], ["a", "0"], ["a", 0, "b", "c"], ["toString"], ["a", "length"]]) {
      const found = follow(value, missing);
      expect(found).toHaveProperty("missing");
      expect(missing.slice(0, (found as { missing: unknown[] }).missing.length)).toEqual((found as { missing: unknown[] }).missing);
    }
  });
});
