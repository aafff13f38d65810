// Code of a definition must only be able to compute a value. Real threads run code that tries to do more.

import { afterAll, expect, it } from "vitest";
import { systemClock } from "../../../../core/clock.ts";
import { type Evaluated, type Evaluation, evaluationMsMax } from "./evaluation.ts";
import { Evaluator } from "./evaluator.ts";

const evaluator = new Evaluator(systemClock);
afterAll(() => evaluator.close());
const never = new AbortController().signal;

function evaluate(language: Evaluation["language"], code: string, input: unknown = {}, msMax = evaluationMsMax): Promise<Evaluated> {
  return evaluator.evaluate({ language, code, input: JSON.stringify(input), msMax }, never, "run");
}
const js = (code: string, input?: unknown, msMax?: number) => evaluate("javascript", code, input, msMax);
const jq = (code: string, input?: unknown) => evaluate("jq", code, input);

it("returns the value of the last statement, with the input as $", async () => {
  expect(await js("const twice = (x) => 2 * x; if ($.on) { twice($.n); } else { 0; }", { on: true, n: 21 })).toEqual({ output: "42" });
  expect(await js("({ a: [1, 'two', null, undefined], f() {} })")).toEqual({ output: '{"a":[1,"two",null,null]}' });
  expect(await js("undefined")).toEqual({ output: "null" });
  expect(await js("[0 / 0, 1 / 0]")).toEqual({ output: '["NaN","Infinity"]' });
});

it("has no object of the process, the network or a module system", async () => {
  const names = [
    "process",
    "require",
    "module",
    "global",
    "fetch",
    "console",
    "setTimeout",
    "WebAssembly",
    "Buffer",
    "Java",
    "load",
    "print",
  ];
  expect(await js(`[${names.map((name) => `typeof ${name}`).join(",")}].filter((type) => type !== "undefined")`)).toEqual({ output: "[]" });
  expect(await js("typeof this.constructor.constructor('return typeof process')()")).toEqual({ output: '"string"' });
  expect(await js("this.constructor.constructor('return typeof process')()")).toEqual({ output: '"undefined"' });
  expect(await js("try { null.x } catch (e) { e.constructor.constructor('return typeof process')() }")).toEqual({ output: '"undefined"' });
});

it("cannot import a module", async () => {
  expect(await js("import('fs'); 1")).toSatisfy((evaluated: Evaluated) => "failed" in evaluated || evaluated.output === "1");
  expect(await js("import fs from 'fs'; 1")).toMatchObject({ failed: expect.stringContaining("SyntaxError") });
});

it("leaves nothing for the next evaluation", async () => {
  await js("globalThis.left = 1; Object.prototype.left = 1; JSON.parse = () => 'mine'; Array.prototype.map = null; 1");
  for (let time = 0; time < 4; time++)
    expect(await js("[typeof left, ({}).left === undefined, typeof [].map, JSON.parse('1')]")).toEqual({
      output: '["undefined",true,"function",1]',
    });
});

it("writes its result with functions that the code cannot replace", async () => {
  expect(await js("JSON.stringify = () => 'mine'; Number.isFinite = () => { throw 1 }; [1]")).toEqual({ output: "[1]" });
});

it("stops code that does not end", async () => {
  expect(await js("while (true) {}", {}, 100)).toEqual({ failed: "Script not evaluated within 0.1 seconds, interrupted.", isLimit: true });
  expect(await js("'a'.repeat(40) + 'b'; /^(a+)+$/.test('a'.repeat(40) + 'b')", {}, 100)).toMatchObject({ isLimit: true });
  expect(await js("1 + 1")).toEqual({ output: "2" });
});

it("limits memory, stack and results", async () => {
  expect(await js("'x'.repeat(1e9)")).toMatchObject({ failed: expect.stringMatching(/memory|length/i) });
  expect(await js("function deep() { return deep() + 1; } deep()")).toMatchObject({ failed: expect.stringContaining("RangeError") });
  expect(await js("'x'.repeat(2e6)")).toMatchObject({ failed: expect.stringContaining("more than the limit of 1048576"), isLimit: true });
  expect(await js("1 + 1")).toEqual({ output: "2" });
});

it("reports an error with its name, and the line where the real server does", async () => {
  expect(await js("var a = 1;\nmissing.thing")).toEqual({
    failed: "Error evaluating the script `ReferenceError: missing is not defined` at line 2",
  });
  expect(await js("throw new Error('no luck')")).toEqual({ failed: "Error evaluating the script `Error: no luck`" });
  expect(await js("throw 5")).toEqual({ failed: "Error evaluating the script `5`" });
  expect(await js("throw { get name() { return {} } }")).toEqual({ failed: "Error evaluating the script `Error`" });
});

it("returns all results of jq, and its error when it has one", async () => {
  expect(await jq(".list[] | select(. > 1)", { list: [1, 2, 3] })).toEqual({ output: "[2,3]" });
  expect(await jq("empty")).toEqual({ output: "[]" });
  expect(await jq('.a | "\\(.)\\n"', { a: 1 })).toEqual({ output: '["1\\n"]' });
  expect(await jq(".a | keys", { a: "text" })).toEqual({ failed: 'string ("text") has no keys' });
  expect(await jq('1, error("late")')).toEqual({ failed: "late" });
});

it("gives jq no access to files, to the environment and to the paths of this process", async () => {
  expect(await jq("$ENV, env, get_jq_origin")).toEqual({ output: '[{},{},"."]' });
  expect(await jq('include "a"; .')).toMatchObject({ failed: expect.stringContaining("module not found") });
});

it("continues to evaluate after jq has used up its memory", async () => {
  expect(await jq("[range(1e9)] | length")).toHaveProperty("failed");
  expect(await jq(".a", { a: 1 })).toEqual({ output: "[1]" });
  expect(await js("1 + 1")).toEqual({ output: "2" });
});

it("uses a bounded number of threads for many evaluations", async () => {
  const all = await Promise.all(Array.from({ length: 40 }, (_, n) => js("$.n * 2", { n })));
  expect(all).toEqual(all.map((_, n) => ({ output: `${n * 2}` })));
  expect(evaluator.threads).toBeLessThanOrEqual(2);
});

it("drops an evaluation that was cancelled before its turn", async () => {
  const cancelled = AbortSignal.abort();
  await expect(evaluator.evaluate({ language: "javascript", code: "1", input: "{}", msMax: 100 }, cancelled, "run")).rejects.toThrow(
    "cancelled",
  );
});
