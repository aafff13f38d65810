import { describe, expect, it } from "vitest";
import { findJsonFault, positionOf } from "./json-position.ts";

describe("finding the fault of a text that is not JSON", () => {
  it.each([
    ["", "EOF while parsing a value", "", 1, 0],
    ['{"worker_id":', "EOF while parsing a value", "worker_id", 1, 13],
    ['{"worker_id"', "EOF while parsing an object", "", 1, 12],
    ["[1,", "EOF while parsing a list", "", 1, 3],
    ['{"a":"x', "EOF while parsing a string", "a", 1, 7],
    ["worker_id=w1", "expected value", "", 1, 1],
    ['{"worker_id":"w1","labels":[]} x', "trailing characters", "", 1, 32],
    ['{"jobs":[{"id":nope}]}', "expected value", "jobs[0].id", 1, 16],
    ['{\n  "a": 1,\n}', "trailing comma", "", 3, 1],
    ["[1,]", "trailing comma", "", 1, 4],
    ["{a:1}", "key must be a string", "", 1, 2],
    ['{"a" 1}', "expected `:`", "", 1, 6],
    ['{"a":1 "b":2}', "expected `,` or `}`", "", 1, 8],
    ['["\\x"]', "invalid escape", "[0]", 1, 4],
    ['"a\nb"', "control character (\\u0000-\\u001F) found while parsing a string", "", 1, 3],
    ["[".repeat(200), "recursion limit exceeded", undefined, 1, 130],
  ])("reports for %j: %s", (text, message, path, line, column) => {
    const fault = findJsonFault(text);
    expect(fault).toMatchObject({ message, line, column });
    if (path !== undefined) expect(fault?.path).toBe(path);
  });

  it.each(["null", " [] ", '{"a":[1,-2.5e+3,"\\u00e9\\n",{"b":true}],"c":{}}', '"\\\\"'])("finds none in %j", (text) => {
    expect(findJsonFault(text)).toBeNull();
  });
});

describe("the place of a value in a JSON text", () => {
  it.each([
    ['{"worker_id":"w1","labels":[1]}', ["labels", 0], 1, 29],
    ['{"worker_id":1,"labels":[]}', ["worker_id"], 1, 14],
    ['{"worker_id":"w1","labels":"docker"}', ["labels"], 1, 35],
    ['{"worker_id":"w1"}', ["labels"], 1, 18],
    ["null", [], 1, 4],
    ['{\n "a": {\n  "b": [true]\n }\n}', ["a", "b", 0], 3, 12],
    ['{\n "a": {\n  "b": [true]\n }\n}', ["a", "c"], 4, 2],
    ['{"a":{"a":1},"b":2}', ["a", "a"], 1, 11],
  ])("is, in %s at %j, line %d column %d", (text, path, line, column) => {
    expect(positionOf(text, path)).toEqual({ line, column });
  });
});
