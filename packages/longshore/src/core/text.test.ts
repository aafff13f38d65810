import { expect, it } from "vitest";
import { ExactNumber } from "./json/json-exact.ts";
import { counted, cutMiddle, cutTail, kindOf, shown, withoutEndSlashes } from "./text.ts";

it("leaves a short text unchanged, and removes the middle of a long one", () => {
  expect(cutMiddle("short", 5)).toBe("short");
  const cut = cutMiddle(`${"a".repeat(100)}${"b".repeat(100)}`, 50);
  expect(cut).toHaveLength(50);
  expect(cut).toMatch(/^a+\n\.\.\. cut here \.\.\.\nb+$/);
  expect(cutMiddle("abcdefghij", 3)).toBe("abc");
});

it("writes one with the singular and other numbers with the plural", () => {
  expect([0, 1, 2].map((count) => counted(count, "step"))).toEqual(["0 steps", "1 step", "2 steps"]);
});

it("shows a value as JSON, or the beginning of it when it is long", () => {
  expect([undefined, null, "a", { b: [1] }].map(shown)).toEqual(["missing", "null", '"a"', '{"b":[1]}']);
  expect(shown("x".repeat(200))).toBe(`"${"x".repeat(99)}...`);
  expect(shown(() => 1)).toBe("() => 1");
  expect(shown([new ExactNumber("12345678901234567890"), { a: "b", c: [] }, {}])).toBe('[12345678901234567000,{"a":"b","c":[]},{}]');
});

it("converts no more of a value than it shows, also of deep and large values", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level++) deep = [deep];
  expect(shown(deep)).toBe(`${"[".repeat(100)}...`);
  let read = 0;
  const watched = {
    get a() {
      read++;
      return "x";
    },
  };
  expect(shown(Array.from({ length: 1_000 }, () => watched))).toMatch(/^\[\{"a":"x"\},.*\.\.\.$/);
  expect(read).toBeLessThan(20);
});

it("names the kind of a value", () => {
  const kinds = ["missing", "null", "a list", "an object", "a string", "a number"];
  expect([undefined, null, [], {}, "", 0].map(kindOf)).toEqual(kinds);
});

it("never cuts a character in two", () => {
  for (let max = 1; max < 40; max++) {
    for (const text of [cutMiddle("😀".repeat(40), max), cutTail("😀".repeat(40), max)]) {
      expect(text.length).toBeLessThanOrEqual(max);
      expect(Buffer.from(text).toString()).toBe(text);
    }
  }
});

it("removes the slashes at the end of an address, and no others", () => {
  expect(["", "/", "///", "/a", "/a/", "//a//b//"].map(withoutEndSlashes)).toEqual(["", "", "", "/a", "/a", "//a//b"]);
});
