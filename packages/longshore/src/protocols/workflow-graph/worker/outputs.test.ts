import { expect, it } from "vitest";
import { encodeOutputs, isTexts } from "./outputs.ts";

it("keeps texts, and writes other values as JSON", () => {
  expect({ ...encodeOutputs({ a: "text", b: 1, c: [true], d: { e: null } }) }).toEqual({ a: "text", b: "1", c: "[true]", d: '{"e":null}' });
});

it("stores a single value under result, and nothing when there is no value", () => {
  expect(encodeOutputs("done")).toEqual({ result: "done" });
  expect(encodeOutputs([1, 2])).toEqual({ result: "[1,2]" });
  expect(encodeOutputs(0)).toEqual({ result: "0" });
  expect(encodeOutputs(null)).toEqual({});
});

it("keeps an output named __proto__", () => {
  expect(JSON.stringify(encodeOutputs(JSON.parse('{"__proto__":"x"}')))).toBe('{"__proto__":"x"}');
});

it("reports which results can be sent as texts without loss", () => {
  expect(isTexts({ a: "text" })).toBe(true);
  expect(isTexts({})).toBe(true);
  expect([{ a: 1 }, "text", null, ["a"]].map(isTexts)).toEqual([false, false, false, false]);
});
