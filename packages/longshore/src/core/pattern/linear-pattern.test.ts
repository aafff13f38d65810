import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { linearPattern, PatternError } from "./linear-pattern.ts";

const free = () => {};
const finds = (source: string, text: string) => linearPattern(source, { javascript: true }).matches(text, free);

/** How much work a match takes, in states of the machine. */
function workOf(source: string, text: string): number {
  let work = 0;
  linearPattern(source, { javascript: true }).matches(text, (spent) => {
    work += spent;
  });
  return work;
}

describe("patterns of JSON Schema", () => {
  it("match as Node's own regular expressions do, anywhere in the text", () => {
    const atom = fc.constantFrom(
      "a",
      "b",
      ".",
      "[ab]",
      "[^a]",
      "\\w",
      "\\W",
      "(a|b)",
      "(ab|a)",
      "(?:b|)",
      "^",
      "$",
      "\\b",
      "\\B",
      "[]",
      "[^]",
    );
    const quiet = fc.constantFrom(
      "{",
      "}",
      "{a}",
      "\\u0061",
      "\\x62",
      "[\\x60-\\x61]",
      "[\\w-]",
      "[a\\-c]",
      "\\$",
      "(?<name>a)",
      "\\n",
      "-",
      "/",
      "]",
    );
    const repeat = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?");
    const piece = fc.oneof(
      fc.tuple(atom, repeat).map(([one, often]) => (["^", "$", "\\b", "\\B"].includes(one) ? one : one + often)),
      quiet,
    );
    const source = fc.array(piece, { maxLength: 5 }).map((parts) => parts.join(""));
    const unit = fc.constantFrom("a", "b", "c", "{", "}", "-", "$", "\n", " ", "]", "é");
    fc.assert(
      fc.property(fc.array(source, { minLength: 1, maxLength: 2 }), fc.string({ unit, maxLength: 8 }), (ways, text) => {
        const pattern = ways.map((way) => way.replaceAll("(?<name>a)", "(a)")).join("|");
        let expected: boolean;
        try {
          expected = new RegExp(pattern).test(text);
        } catch {
          // Some combinations are invalid patterns, such as `{` and `2}` without anything to repeat.
          return;
        }
        expect(finds(pattern, text), `/${pattern}/`).toBe(expected);
      }),
      { numRuns: 3_000 },
    );
  });

  it("support properties of characters, and characters above U+FFFF", () => {
    expect(finds("^\\p{Lu}\\p{L}+$", "Étude")).toBe(true);
    expect(finds("^\\P{L}+$", "12x")).toBe(false);
    expect(finds("^.$", "𝄞")).toBe(true);
    expect(finds("^\\u{1D11E}$", "𝄞")).toBe(true);
  });

  it("are refused by name when they are invalid or cannot be matched in parallel", () => {
    for (const source of [
      "(?=a)",
      "(?!a)",
      "(?<=a)b",
      "(?<!a)b",
      "(a)\\1",
      "\\k<a>",
      "(",
      ")",
      "[a",
      "a**b\\",
      "*",
      "\\p{Nothing}",
      "[b-a]",
      "a{2,1}",
    ])
      expect(() => linearPattern(source, { javascript: true }), source).toThrow(PatternError);
    expect(() => linearPattern("(?=a)b", { javascript: true })).toThrow("lookahead");
  });

  it("take work that grows linearly with the text, also with nested repeats", () => {
    for (const source of ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "(a|aa)+$", "^(.*a){10}$", "(?:a?){20}a{20}$"]) {
      const once = workOf(source, `${"a".repeat(2_000)}!`);
      const twice = workOf(source, `${"a".repeat(4_000)}!`);
      expect(twice, source).toBeLessThan(2.2 * once + 4_096);
    }
  });

  it("stop when the work is too much", () => {
    const enough = () => {
      throw new Error("enough");
    };
    expect(() => linearPattern("^(a+)+$", { javascript: true }).matches("a".repeat(10_000), enough)).toThrow("enough");
  });

  it("are refused when they are too long, too deep, or repeat too much", () => {
    for (const source of ["a".repeat(10_001), `${"(".repeat(60)}${")".repeat(60)}`, "(a{99}){99}", "((){999}){999}"])
      expect(() => linearPattern(source), source.slice(0, 20)).toThrow(PatternError);
  });
});
