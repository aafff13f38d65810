import { expect, it } from "vitest";
import { verdicts } from "../../../core/verdict.ts";
import { statusOfVerdict, verdictOfStatus } from "./codes.ts";

it("writes every verdict as 200 or 409", () => {
  expect(verdicts.map((verdict) => [verdict, statusOfVerdict[verdict]])).toEqual([
    ["ok", 200],
    ["cancel", 200],
    ["again", 409],
    ["stale", 409],
    ["busy", 409],
    ["gone", 409],
  ]);
});

it("reads only 200 and 409 as news about the lease", () => {
  expect([200, 409, 404, 500, 503].map(verdictOfStatus)).toEqual(["ok", "stale", undefined, undefined, undefined]);
});
