import { expect, it, onTestFinished, vi } from "vitest";
import { Slices, turnRows } from "../slices/slices.ts";
import { parseExact, writeExact } from "./json-exact.ts";
import { findJsonFault } from "./json-position.ts";
import { parseLarge } from "./json-slices.ts";

const samples = [
  '{"a":[1,2,{"b":[]},[[[[1,2],3],4],5]],"c":"x\\u00e9\\n\\\\\\"y","d":{}, "e" : null , "f":[ ]}',
  '[ "aaaaaaaaaaaaaaaaaaaa\\\\", "\\ud83d\\ude00\\ud83d\\ude00\\ud83d\\ude00", "", [ "bb" , "cc" ] , {"x":{"y":{"z":"long text of a value"}}} ]',
  '{"2":1,"1":2,"a":3,"a":{"again":[1,2,3,4,5,6]},"__proto__":{"polluted":true},"constructor":"x"}',
  '[12345678901234567890,-1.5e3,1e400,{"n":98765432109876543210},true,false]',
  '{"a name that is longer than the smallest slice":1,"another name that is longer": {"x":1} ,"and the last that is":"text"}',
  ' [\n  [ ],\n  { },\n  ["]", "}", ",", ":"]\n]\n',
];

/** Numbers are not cut, so a slice holds at least the longest number. */
const longestNumber = 21;

it.each(samples)("reads %s in slices of every size as it is read at once", async (text) => {
  const whole = parseExact(text);
  for (let chars = longestNumber; chars < text.length; chars++) {
    expect(writeExact((await parseLarge(text, chars, new Slices()))?.value)).toBe(writeExact(whole));
  }
});

it("leaves a short text, and a text that is neither a list nor an object, to the usual reader", async () => {
  expect(await parseLarge("[1,2,3]", 7)).toBeUndefined();
  expect(await parseLarge('"a long text"', 7)).toBeUndefined();
  expect(await parseLarge("name: of YAML", 7)).toBeUndefined();
});

it("finds a mistake at any place of the text, as the usual reader does", async () => {
  let faults = 0;
  for (const text of samples) {
    for (let at = 1; at < text.length; at++) {
      for (const broken of [text.slice(0, at), `${text.slice(0, at)},${text.slice(at)}`, `${text.slice(0, at)}]${text.slice(at)}`]) {
        if (broken.length <= longestNumber) continue;
        const parsed = await parseLarge(broken, longestNumber, new Slices());
        const fault = findJsonFault(broken);
        if (parsed === undefined) continue;
        if (parsed.fault === undefined) expect(writeExact(parsed.value)).toBe(writeExact(parseExact(broken)));
        else expect({ ...parsed.fault, broken }).toEqual({ ...fault, path: "", broken });
        if (parsed.fault !== undefined) faults++;
      }
    }
  }
  expect(faults).toBeGreaterThan(900);
});

it("reads only one slice again to find a mistake at the end of a long text", async () => {
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  const parsed = await parseLarge(`{"x":"${"\\n".repeat(50_000)}",}`, 1_000, new Slices());
  expect(parsed?.fault).toEqual({ message: "trailing comma", path: "", line: 1, column: 100_009 });
  expect(Math.max(...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(1_100);
});

it("skips white space that is longer than a slice", async () => {
  const space = " ".repeat(100);
  const parsed = await parseLarge(`[1${space},${space}{${space}"a"${space}:${space}2${space}}${space}]${space}`, 30, new Slices());
  expect(parsed?.value).toEqual([1, { a: 2 }]);
});

it("reads one slice in a turn, for any number of texts", async () => {
  const slices = new Slices();
  const items = `[${"1,".repeat(500)}1]`;
  const string = `{"x":"${"\\n".repeat(500)}"}`;
  const nested = `${"[".repeat(90)}"${"y".repeat(500)}"${"]".repeat(90)}`;
  const parsed = await Promise.all([items, string, nested].map((text) => parseLarge(text, 100, slices)));
  expect(parsed.map((each) => writeExact(each?.value))).toEqual([items, string, nested]);
  expect(slices.longest).toBe(turnRows);
  expect(slices.total / turnRows).toBeGreaterThan(30);
});

it("leaves a text that nests too deep to the usual reader, which refuses it", async () => {
  expect(await parseLarge(`${"[".repeat(101)}${"]".repeat(101)}`, 10)).toBeUndefined();
});
