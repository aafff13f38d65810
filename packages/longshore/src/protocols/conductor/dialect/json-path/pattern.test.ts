import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compilePattern } from "./pattern.ts";

const free = () => {};
const matches = (source: string, text: string, flags = "") => compilePattern(source, flags).matches(text, free);

describe("patterns", () => {
  it("match only the whole text", () => {
    expect(matches("ab", "ab")).toBe(true);
    expect(matches("ab", "xab")).toBe(false);
    expect(matches(".*ab.*", "xaby")).toBe(true);
    expect(matches("^ab$", "ab")).toBe(true);
  });

  it("support sets, classes, word boundaries and escapes", () => {
    expect(matches("[^a-c\\d-]+", "xyz")).toBe(true);
    expect(matches("[^a-c\\d-]+", "xy-")).toBe(false);
    expect(matches("[]x]+", "]x")).toBe(true);
    expect(matches("\\w+\\s\\D\\.", "word x.")).toBe(true);
    expect(matches("a\\b.*", "a b")).toBe(true);
    expect(matches("a\\b.*", "ab")).toBe(false);
    expect(matches("\\t\\/", "\t/")).toBe(true);
  });

  it("use the flags for letter case and for the dot", () => {
    expect(matches("straße", "STRASSE", "i")).toBe(false);
    expect(matches("[a-f]+X", "BeEx", "i")).toBe(true);
    expect(matches("a.b", "a\nb")).toBe(false);
    expect(matches("a.b", "a\nb", "s")).toBe(true);
  });

  it("match as Node's own regular expressions do", () => {
    const atom = fc.constantFrom("a", "b", ".", "[ab]", "[^a]", "\\w", "(a|b)", "(ab|a)", "(?:b|)");
    const repeat = fc.constantFrom("", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "*?");
    const source = fc.array(fc.tuple(atom, repeat), { maxLength: 5 }).map((parts) => parts.flat().join(""));
    fc.assert(
      fc.property(
        fc.array(source, { minLength: 1, maxLength: 2 }),
        fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 }),
        (ways, text) => {
          const pattern = ways.join("|");
          expect(matches(pattern, text)).toBe(new RegExp(`^(?:${pattern})$`).test(text));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
