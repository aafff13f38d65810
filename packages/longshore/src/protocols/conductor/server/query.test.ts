import { expect, it } from "vitest";
import { parseQuery } from "./query.ts";
import { Refused } from "./replies.ts";

it("reads conditions joined by AND, in any case and with any space", () => {
  expect(parseQuery("status = COMPLETED  AND\tworkflowType IN (a, 'b  c')and x>5 AND y <'7'")).toEqual([
    { field: "status", operator: "=", values: ["COMPLETED"] },
    { field: "workflowType", operator: "IN", values: ["a", "b  cand x>5"] },
    { field: "y", operator: "<", values: ["7"] },
  ]);
  expect(parseQuery("a in(1,2) AND b='x AND' AND c=")).toEqual([
    { field: "a", operator: "IN", values: ["1", "2"] },
    { field: "b", operator: "=", values: ["x AND"] },
    { field: "c", operator: "=", values: [""] },
  ]);
});

it("ignores parentheses around one condition and around several", () => {
  const one = { field: "a", operator: "=", values: ["1"] };
  const list = { field: "b", operator: "IN", values: ["2", "3"] };
  for (const text of ["a=1 AND (b IN (2,3))", "(a='1' AND b IN (2,3))", "((a=1)) AND ( b IN (2, 3) )", "a=1 AND (b IN (2,3)"])
    expect(parseQuery(text), text).toEqual([one, list]);
  expect(() => parseQuery("()")).toThrow("Incorrectly formatted query string: ()");
});

it("has no filter without conditions", () => {
  for (const text of [undefined, "", "  ", "*"]) expect(parseQuery(text)).toEqual([]);
});

it("refuses texts that are not conditions, and texts that are too long", () => {
  for (const text of ["status", "= 5", "a AND b = 1", "a=1 AND AND b=2", "statusIN (a)", "a".repeat(10_001)])
    expect(() => parseQuery(text), text.slice(0, 20)).toThrow(Refused);
});
