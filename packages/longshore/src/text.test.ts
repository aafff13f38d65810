import { expect, it } from "vitest";
import { counted, cutMiddle, cutTail } from "./text.ts";

it("leaves a text that fits alone and cuts the middle out of one that does not", () => {
  expect(cutMiddle("short", 5)).toBe("short");
  const cut = cutMiddle(`${"a".repeat(100)}${"b".repeat(100)}`, 50);
  expect(cut).toHaveLength(50);
  expect(cut).toMatch(/^a+\n\.\.\. cut here \.\.\.\nb+$/);
  expect(cutMiddle("abcdefghij", 3)).toBe("abc");
});

it("counts one thing and several", () => {
  expect([0, 1, 2].map((count) => counted(count, "step"))).toEqual(["0 steps", "1 step", "2 steps"]);
});

it("never cuts a character in two", () => {
  for (let max = 1; max < 40; max++) {
    for (const text of [cutMiddle("😀".repeat(40), max), cutTail("😀".repeat(40), max)]) {
      expect(text.length).toBeLessThanOrEqual(max);
      expect(Buffer.from(text).toString()).toBe(text);
    }
  }
});
