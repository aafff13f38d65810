// Value expressions: flows without steps, whose output shows the value of an expression for an input.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { flow, step, storeAndRun } from "../steps.ts";

const INPUT = {
  name: "Ann",
  list: [10, [20, { deep: true }]],
  "a.b": "dotted",
  "x y": "spaced",
  none: null,
  zero: 0,
  empty: "",
  no: false,
};

const makes = (name: string, output: unknown, input: unknown = INPUT): Step[] => storeAndRun(name, flow([], output), input);

export const expressions: Chapter = {
  name: "expressions",
  steps: [
    makes("a literal of JSON", [1, -2.5, "text", null, true, { k: [] }]),
    makes("the whole input", { $input: "$" }),
    makes("the whole input by an empty path", { $input: "" }),
    makes("a field", { $input: "name" }),
    makes("a field by path", { $input: "$.name" }),
    makes("a field with a dot", { $input: "a.b" }),
    makes("a dot between fields", { $input: "o.k" }, { o: { k: "inside" } }),
    makes("a field with a space", { $input: "x y" }),
    makes("a field that looks like an element", { $input: "list[0]" }),
    makes("a quoted key", { $input: "$['x y']" }),
    makes("a quoted key with a dot", { $input: "$['a.b']" }),
    makes("an element", { $input: "$.list[0]" }),
    makes("an element of an element", { $input: "$.list[1][1].deep" }),
    makes("an element past the end", { $input: "$.list[9]" }),
    makes("a negative index", { $input: "$.list[-1]" }),
    makes("a field that is not there", { $input: "nothing" }),
    makes("a field of null", { $input: "$.none.more" }),
    makes("a field of a text", { $input: "$.name.more" }),
    makes("an index into an object", { $input: "$[0]" }),
    makes("a path that is no path", { $input: "$.a[" }),
    makes("deep inside", { a: [{ b: { $input: "name" } }, { $input: "zero" }] }),
    makes("$literal", { $literal: { $input: "name", $step: "x" } }),
    makes("$literal inside", { a: { $literal: { $if: 1 } } }),
    makes("$if true", { $if: true, then: 1, else: 2 }),
    makes("$if false", { $if: false, then: 1, else: 2 }),
    makes("$if without else", { $if: false, then: 1 }),
    makes("$if null", { $if: { $input: "none" }, then: 1, else: 2 }),
    makes("$if zero", { $if: { $input: "zero" }, then: 1, else: 2 }),
    makes("$if an empty text", { $if: { $input: "empty" }, then: 1, else: 2 }),
    makes("$if a failed condition", { $if: { $input: "nothing" }, then: 1, else: 2 }),
    makes("$if leaves the other branch alone", { $if: { $input: "no" }, then: { $input: "nothing" }, else: { $input: "name" } }),
    makes("$coalesce", { $coalesce: [null, { $input: "none" }, { $input: "name" }, 4] }),
    makes("$coalesce of nothing but null", { $coalesce: [null, { $input: "none" }] }),
    makes("$coalesce of nothing", { $coalesce: [] }),
    makes("$coalesce takes false", { $coalesce: [{ $input: "no" }, 1] }),
    makes("$coalesce with a failure", { $coalesce: [{ $input: "nothing" }, 1] }),
    makes("$variable that nobody told", { $variable: "v" }),
    makes("$variable with a default", { $variable: "v", default: { $input: "name" } }),
    makes("an unknown dollar key", { $other: 1 }),
    makes("a dollar key beside another", { $input: "name", more: 1 }),
    makes("an input that is no object", { $input: "$" }, "just text"),
    makes("large and small numbers", { $input: "$" }, [1e21, 1e-7, 9007199254740991, -0, 0.1]),
    storeAndRun(
      "variables by run",
      flow([], { a: { $variable: "v" }, b: { $variable: "$.o.k" } }),
      {},
      { variables: { v: 1, o: { k: 2 } } },
    ),
  ].flat(),
};

const one = (input: unknown, more: Record<string, unknown> = {}) => step("one", "/mock/one", input, more);
const fails = (id: string, more: Record<string, unknown> = {}) => step(id, "/mock/fails", {}, more);

export const steps: Chapter = {
  name: "steps",
  steps: [
    storeAndRun(
      "two steps, the second after the first",
      flow([one({ in: { $input: "m" } }), step("two", "/mock/two", { in: { $step: "one", path: "out" } })], {
        name: { $step: "one", path: "out" },
        x: { $step: "two", path: "x" },
      }),
      { m: "a" },
    ),
    storeAndRun("an input that no behaviour answers to", flow([one({ in: "zzz" })], { $step: "one" })),
    storeAndRun("a component that fails", flow([fails("s")], { $step: "s" })),
    storeAndRun("a component that breaks", flow([step("s", "/mock/breaks", {})], { $step: "s" })),
    storeAndRun("a component that refuses its input", flow([step("s", "/mock/invalid", {})], { $step: "s" })),
    storeAndRun("a failure nobody looks at", flow([fails("s", { mustExecute: true }), one({ in: "a" })], { $step: "one" })),
    storeAndRun(
      "a failure that a later step needs",
      flow([fails("s"), step("two", "/mock/two", { in: { $step: "s" } })], { $step: "two" }),
    ),
    storeAndRun("useDefault without a value", flow([fails("s", { onError: { action: "useDefault" } })], { $step: "s" })),
    storeAndRun(
      "useDefault with a value",
      flow([fails("s", { onError: { action: "useDefault", defaultValue: { d: 1 } } })], { $step: "s" }),
    ),
    storeAndRun(
      "useDefault does not help when the input failed",
      flow([fails("s"), step("two", "/mock/two", { in: { $step: "s" } }, { onError: { action: "useDefault", defaultValue: 1 } })], {
        $step: "two",
      }),
    ),
    storeAndRun("retry, in vain", flow([fails("s", { onError: { action: "retry" } })], { $step: "s" })),
    storeAndRun(
      "only the taken branch runs",
      flow([one({ in: "a" }), fails("s")], { $if: { $input: "yes" }, then: { $step: "one" }, else: { $step: "s" } }),
      { yes: true },
    ),
    storeAndRun(
      "and so it does the other way",
      flow([one({ in: "a" }), fails("s")], { $if: { $input: "yes" }, then: { $step: "one" }, else: { $step: "s" } }),
      { yes: false },
    ),
    storeAndRun(
      "a condition that a step answers",
      flow([one({ in: "a" }), fails("s")], { $if: { $step: "one" }, then: 1, else: { $step: "s" } }),
    ),
    storeAndRun("a condition that failed", flow([fails("s")], { $if: { $step: "s" }, then: 1, else: 2 })),
    storeAndRun(
      "coalesce over steps",
      flow([step("n", "/mock/null", {}), one({ in: "a" })], { $coalesce: [{ $step: "n" }, { $step: "one" }] }),
    ),
    storeAndRun("a field of a step that answered null", flow([step("n", "/mock/null", {})], { $step: "n", path: "x" })),
    storeAndRun("a field that a step did not answer", flow([one({ in: "a" })], { $step: "one", path: "nothing" })),
    storeAndRun("a component that no route takes", flow([step("s", "/nowhere/x")], { $step: "s" })),
    storeAndRun("a component that its plugin has not", flow([step("s", "/builtin/x")], { $step: "s" })),
    storeAndRun("a step that nobody needs is left out", flow([one({ in: "a" }), fails("s")], { $step: "one" })),
  ].flat(),
};
