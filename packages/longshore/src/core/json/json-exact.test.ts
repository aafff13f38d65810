import fc from "fast-check";
import { expect, it } from "vitest";
import type { Json } from "./json.ts";
import { ExactNumber, parseExact, writeExact } from "./json-exact.ts";

const kept = [
  "12345678901234567890",
  "-9007199254740993",
  "9223372036854775807",
  "1763381998123456789",
  "1e400",
  "-1e400",
  "1e-400",
  "0.1234567890123456789",
  "3.14159265358979323846264338327950288",
  "123456789012345678901234567890.5e10",
];

it.each(kept)("writes %s exactly as it was read, at any place", (literal) => {
  for (const text of [literal, `[${literal}]`, `{"a":{"b":[1,${literal},"x"]},"c":${literal}}`, ` [ ${literal} , "${literal}" ] `]) {
    expect(writeExact(parseExact(text))).toBe(text.replaceAll(" ", ""));
  }
});

it.each([
  ["9007199254740992", 9007199254740992],
  ["0.30000000000000004", 0.30000000000000004],
  ["123456789012345", 123456789012345],
  ["1.0", 1],
  ["1e5", 100000],
  ["1.7976931348623157e308", 1.7976931348623157e308],
  ["100000000000000000000000", 1e23],
  ["0e999", 0],
])("reads %s as a plain number, because no digit is lost", (literal, value) => {
  expect(parseExact(literal)).toBe(value);
});

it("acts as a number in other code, and becomes the nearest double on other wires", () => {
  const value = parseExact("[12345678901234567890, 1e400]") as unknown as [ExactNumber, ExactNumber];
  expect(value[0]).toBeInstanceOf(ExactNumber);
  expect(Number(value[0])).toBe(12345678901234567000);
  expect([(value[0] as unknown as number) > 5, (value[0] as unknown as number) < 5]).toEqual([true, false]);
  expect(`${value[0]}`).toBe("12345678901234567890");
  expect(JSON.stringify(value)).toBe("[12345678901234567000,null]");
});

it("refuses what JSON.parse refuses, with the same message", () => {
  for (const text of [
    "{12345678901234567890:1}",
    "[012345678901234567890]",
    "[12345678901234567890",
    "1234567890123456789.",
    "-",
    '"12345678901234567890',
  ]) {
    let native = "";
    try {
      JSON.parse(text);
    } catch (error) {
      native = (error as Error).message;
    }
    expect(native).not.toBe("");
    expect(() => parseExact(text)).toThrow(native);
  }
});

it("keeps a member called __proto__", () => {
  const text = '{"__proto__":12345678901234567890,"a":"12345678901234567890"}';
  expect(writeExact(parseExact(text))).toBe(text);
});

it("reads the same values as JSON.parse, except for the digits", () => {
  const number = fc.oneof(
    fc.constantFrom(...kept),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.maxSafeInteger().map(String),
  );
  const text = fc.letrec<{ json: string }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      number,
      fc.string().map((one) => JSON.stringify(one)),
      fc.array(tie("json")).map((items) => `[${items.join(", ")}]`),
      fc
        .array(fc.tuple(fc.string(), tie("json")))
        .map((all) => `{${all.map(([key, one]) => `${JSON.stringify(key)} : ${one}`).join(",")}}`),
    ),
  })).json;
  fc.assert(
    fc.property(text, (one) => {
      const exact = parseExact(one);
      expect(JSON.stringify(exact)).toBe(JSON.stringify(JSON.parse(one) as Json));
      expect(parseExact(writeExact(exact))).toEqual(exact);
      expect(writeExact(parseExact(writeExact(exact)))).toBe(writeExact(exact));
    }),
  );
});
