import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atOnce } from "../slices/slice-work.ts";
import type { Json } from "./json.ts";
import * as sliced from "./json-text.ts";
import { sortedText } from "./json-text.ts";

const compactText = (text: string, chars?: number) => atOnce(sliced.compactText(text, chars));
const memberTexts = (text: string, chars?: number) => atOnce(sliced.memberTexts(text, chars));

describe("JSON as text", () => {
  it("loses its white space and nothing else", () => {
    expect(compactText(' { "b" : [ 1.0 , 9007199254740993 ] ,\n\t"2":" a  b ", "1" : {} }\r\n')).toBe(
      '{"b":[1.0,9007199254740993],"2":" a  b ","1":{}}',
    );
    expect(compactText(String.raw`{"a":"\u0041\/\n\"\\ ", "\u0062":"\u001f"}`)).toBe(String.raw`{"a":"A/\n\"\\ ","b":"\u001f"}`);
    expect(compactText('"x"')).toBe('"x"');
    expect(compactText(" null ")).toBe("null");
  });

  it("is what JSON.stringify writes, for any white space in the input", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 1, "\t"), (text, space) => {
        const value: unknown = JSON.parse(text);
        expect(compactText(JSON.stringify(value, null, space))).toBe(JSON.stringify(value));
      }),
    );
  });

  const unit = fc.constantFrom(
    "a",
    "\\n",
    "\\\\",
    '\\"',
    "\\u0041",
    "\ud83d\ude00",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\ud83d\\ude00",
    "\\/",
    " ",
  );
  const string = fc.array(unit, { maxLength: 12 }).map((units) => `"${units.join("")}"`);

  it("is the same in slices of every size", () => {
    fc.assert(
      fc.property(fc.array(string, { maxLength: 4 }), fc.integer({ min: 1, max: 30 }), (strings, chars) => {
        const text = `{ "a" : [ ${strings.join(" , ")} ], "b" : ${strings[0] ?? "1"} }`;
        expect(compactText(text, chars)).toBe(JSON.stringify(JSON.parse(text)));
        expect([...memberTexts(text, chars)]).toEqual([...memberTexts(text)]);
      }),
    );
  });

  it("is written in slices of about the given number of characters", () => {
    const text = `{"x":"${"\\n".repeat(5_000)}","y":[${"1 , ".repeat(2_500)}1]}`;
    const count = (work: Iterable<unknown>) => [...work].length;
    expect(count(sliced.compactText(text, 100))).toBeGreaterThan(190);
    expect(count(sliced.memberTexts(text, 100))).toBeGreaterThan(190);
  });

  it("lists the members of an object as they are written", () => {
    const text = ' { "flow" : { "a,b" : [ 1 , {"c":"}"} ] } , "dryRun":true,"n\\u0061me" : 1.50 , "flow" : "last" } ';
    expect([...memberTexts(text)]).toEqual([
      ["flow", '"last"'],
      ["dryRun", "true"],
      ["name", "1.50"],
    ]);
    expect(memberTexts('{"data":{ "x" : 1 }}').get("data")).toBe('{ "x" : 1 }');
    expect(memberTexts("{}").size).toBe(0);
  });

  it("has the members that the object has", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (object) => {
        const members = memberTexts(JSON.stringify(object, null, 1));
        expect([...members.keys()].sort()).toEqual(Object.keys(object).sort());
        for (const [name, text] of members) expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(object[name])));
      }),
    );
  });

  it("can be written with its keys in order, at every depth", () => {
    const value: Json = { b: [{ z: 1, a: null }], a: { y: "", x: true } };
    expect(sortedText(value)).toBe('{"a":{"x":true,"y":""},"b":[{"a":null,"z":1}]}');
  });
});
