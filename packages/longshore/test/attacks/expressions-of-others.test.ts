// The author of a definition writes an expression that spoils the thread for the expressions of others. One value of a hundred levels
// overwrote the data of jq, and all later expressions of jq failed in that thread. Or the expression has a result or an error that the
// server is slow to read.

import { afterAll, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { Evaluated, Evaluation } from "../../src/protocols/conductor/server/evaluate/evaluation.ts";
import { Evaluator } from "../../src/protocols/conductor/server/evaluate/evaluator.ts";

const evaluator = new Evaluator(systemClock);
afterAll(() => evaluator.close());
const never = new AbortController().signal;

function evaluate(language: Evaluation["language"], code: string, input: unknown = {}): Promise<Evaluated> {
  return evaluator.evaluate({ language, code, input: JSON.stringify(input), msMax: 10_000 }, never, "run");
}
const js = (code: string) => evaluate("javascript", code);
const jq = (code: string, input?: unknown) => evaluate("jq", code, input);

it("evaluates each expression of jq in a memory of its own", async () => {
  const fails = () => jq("reduce range(50000) as $n (0; [.])");
  // Compiled code needs less stack than code that V8 has just loaded. Then jq gets to the end, and writes a note in place of so many
  // levels.
  const failed = expect.stringMatching(/^(jq was ended: Maximum call stack size exceeded|its results are not JSON$)/);
  expect(await Promise.all([fails(), fails(), fails()])).toMatchObject(Array(3).fill({ failed }));
  for (let time = 0; time < 4; time++) expect(await jq(".a", { a: 1 })).toEqual({ output: "[1]" });
});

it("computes with values of many levels", async () => {
  const levels = (count: number) => jq(`reduce range(${count}) as $n (0; [.]) | [recurse] | length`);
  expect(await levels(99)).toEqual({ output: "[100]" });
  expect(await levels(1000)).toEqual({ output: "[1001]" });
  expect(await jq(".a", { a: JSON.parse(`${"[".repeat(90)}${"]".repeat(90)}`) })).toHaveProperty("output");
});

it("takes no option of jq from code", async () => {
  expect(await jq("-1")).toEqual({ output: "[-1]" });
  expect(await jq("-f", ".x")).toMatchObject({ failed: expect.stringContaining("f/0 is not defined") });
  expect(await jq("-h")).toMatchObject({ failed: expect.stringContaining("h/0 is not defined") });
});

it("limits the text of an error, and the values and levels of a result", async () => {
  expect(await js("throw new Error('x'.repeat(1e6))")).toEqual({ failed: expect.stringMatching(/^.{4096}$/s) });
  expect(await jq('error("x" * 100000)')).toEqual({ failed: expect.stringMatching(/^.{4096}$/s) });
  expect(await js("Array(40000).fill([])")).toMatchObject({
    failed: expect.stringContaining("values, which is more than the limit of 65536"),
  });
  expect(await jq("reduce range(101) as $n (0; [.])")).toMatchObject({
    failed: expect.stringContaining("levels, which is more than the limit of 100"),
  });
});
