import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DiffLine, diffLines } from "./line-diff.ts";
import { atOnce } from "./slices/slice-work.ts";

const diff = (before: readonly string[], after: readonly string[]) => atOnce(diffLines(before, after));
const shown = (lines: readonly DiffLine[]) =>
  lines.map(({ op, text, count }) => (op === "skipped" ? `..${count}` : `${{ same: " ", added: "+", removed: "-" }[op]}${text}`));

describe("the difference of two texts", () => {
  it("has the lines around a change, and the number of those left out", () => {
    const before = Array.from({ length: 20 }, (_none, at) => `line ${at}`);
    const after = before.with(9, "another line");
    expect(shown(diff(before, after))).toEqual([
      "..6",
      ...[" line 6", " line 7", " line 8", "-line 9", "+another line", " line 10", " line 11", " line 12"],
      "..7",
    ]);
  });

  it("is as short as it can be", () => {
    expect(shown(diff([..."abcabba"], [..."cbabac"])).filter((line) => !line.startsWith(" "))).toHaveLength(5);
    expect(diff(["a"], ["a"])).toEqual([{ op: "skipped", text: "", count: 1 }]);
  });

  it("leads from one text to the other, whatever they are", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 12 });
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diff(before, after);
        // Lines that are left out are the same in both texts.
        const textOf = (other: DiffLine["op"], whole: readonly string[]) => {
          const texts: string[] = [];
          for (const { op, text, count } of lines) {
            if (op === "skipped") texts.push(...whole.slice(texts.length, texts.length + count));
            else if (op !== other) texts.push(text);
          }
          return texts;
        };
        expect([textOf("added", before), textOf("removed", after)]).toEqual([before, after]);
      }),
    );
  });

  it("of texts with little in common replaces one by the other", () => {
    const many = (name: string) => Array.from({ length: 2_000 }, (_none, at) => `${name} ${at}`);
    const lines = diff(["same", ...many("old"), "end"], ["same", ...many("new"), "end"]);
    expect(lines[0]).toMatchObject({ op: "same", text: "same" });
    expect(lines.filter(({ op }) => op === "removed")).toHaveLength(2_000);
    expect(lines.filter(({ op }) => op === "added")).toHaveLength(2_000);
  });
});
