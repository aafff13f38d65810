import { expect, it } from "vitest";
import { parseExact } from "../core/json/json-exact.ts";
import { jsonText } from "./print-json.ts";

it("every control character is escaped, and the text has the same meaning", () => {
  const all = Array.from({ length: 0x110 }, (_, code) => String.fromCharCode(code)).join("");
  for (const space of [undefined, 2]) {
    const text = jsonText({ [all]: all }, space);
    expect(text).not.toMatch(/[^\P{Cc}\n]/u);
    expect(JSON.parse(text)).toEqual({ [all]: all });
  }
});

it("numbers keep all their digits", () => {
  expect(jsonText(parseExact('{"n":12345678901234567890}'))).toBe('{"n":12345678901234567890}');
});
