import { describe, expect, it } from "vitest";
import { atOnce } from "./slices/slice-work.ts";
import { hasText, hasTextInSlices, TextSearch } from "./text-search.ts";

const mebi = 1_048_576;

describe("searching a text", () => {
  it("compares each character a bounded number of times, also in repetitive texts", () => {
    const text = "a".repeat(100_000);
    for (const wanted of [`${"a".repeat(7_000)}b`, `ab${"a".repeat(7_000)}`, `${"a".repeat(3_000)}b${"a".repeat(3_000)}`]) {
      const search = new TextSearch(wanted);
      expect(search.isIn(text)).toBe(false);
      expect(search.compared).toBeLessThanOrEqual(2 * (text.length + wanted.length));
    }
  });

  it("finds what `includes` finds, in texts of few different letters", () => {
    let seed = 1;
    const letters = (length: number) =>
      Array.from({ length }, () => {
        seed = (seed * 48_271) % 2_147_483_647;
        return "ab"[seed % 2];
      }).join("");
    for (let round = 0; round < 2_000; round++) {
      const [text, wanted] = [letters(round % 60), letters(1 + (round % 7))];
      expect(new TextSearch(wanted).isIn(text), `${wanted} in ${text}`).toBe(text.includes(wanted));
    }
  });

  it("finds long and short texts, and finds the empty text everywhere", () => {
    const long = `${"ab".repeat(400)}c`;
    expect(hasText(`x${long}y`, long)).toBe(true);
    expect(hasText(`x${long.slice(1)}y`, long)).toBe(false);
    expect(hasText("text", "ex")).toBe(true);
    expect(hasText("", "")).toBe(true);
  });

  it("finds text across two slices, in upper and lower case", () => {
    for (const wanted of ["Needle", `N${"e".repeat(600)}`]) {
      const text = `${"x".repeat(mebi - 3)}${wanted.toUpperCase()}${"x".repeat(mebi)}`;
      expect(atOnce(hasTextInSlices(text, wanted))).toBe(true);
      expect(atOnce(hasTextInSlices(text, `${wanted}!`))).toBe(false);
      const slices = hasTextInSlices(text, `${wanted}!`);
      let count = 1;
      while (!slices.next().done) count++;
      expect(count).toBe(3);
    }
    expect(atOnce(hasTextInSlices("", "a"))).toBe(false);
  });
});
