import { describe, expect, it } from "vitest";
import { either } from "../../../../test/support/flow-world.ts";
import type { Json } from "../../../core/json/json.ts";
import { type ExpressionFault, readExpression } from "./expression.ts";
import { readFlow } from "./flow.ts";

const read = (value: Json) => {
  const faults: ExpressionFault[] = [];
  return { expression: readExpression(value, ["x"], faults), faults };
};

describe("an expression", () => {
  it("is decoded in the order of the language", () => {
    const all = { $literal: 1, $if: true, $coalesce: [], $from: {}, $step: "a", $input: "b", $variable: "c" };
    const kinds = Object.keys(all).map((_, from) => {
      const rest = Object.fromEntries(Object.entries(all).slice(from)) as { [key: string]: Json };
      const { expression, faults } = read("$if" in rest && !("$literal" in rest) ? { ...rest, ...either(true, 1) } : rest);
      return faults.length > 0 ? "refused" : expression.kind;
    });
    expect(kinds).toEqual(["literal", "if", "coalesce", "refused", "step", "input", "variable"]);
    expect(read({ plain: { $step: "a" } }).expression.kind).toBe("object");
    expect(read([{ $step: "a" }]).expression.kind).toBe("list");
    expect(read({ plain: [1, "$.x"] }).expression).toEqual({ kind: "literal", value: { plain: [1, "$.x"] } });
  });

  it("has nothing inside of a literal interpreted", () => {
    expect(read({ $literal: { $from: 1, a: { $step: 7 } } })).toEqual({
      expression: { kind: "literal", value: { $from: 1, a: { $step: 7 } } },
      faults: [],
    });
  });

  it("takes a path of null for the whole value", () => {
    expect(read({ $input: null }).expression).toEqual({ kind: "input", path: [] });
    expect(read({ $step: "a", path: null }).expression).toEqual({ kind: "step", step: "a", path: [] });
  });

  it.each<[string, Json, string]>([
    ["a condition without a value", { $if: true }, "x"],
    ["a coalesce of no list", { $coalesce: {} }, "x.$coalesce"],
    ["a step that is not a text", { $step: 1 }, "x.$step"],
    ["a path that is not a text", { $step: "a", path: 1 }, "x.path"],
    ["a path that is none", { $input: "$a" }, "x.$input"],
    ["a variable that is not a text", { $variable: {} }, "x.$variable"],
    ["the old form", { a: [{ $from: { workflow: "input" } }] }, "x.a.0.$from"],
  ])("with %s is refused, with its path", (_, value, where) => {
    const { faults } = read(value);
    expect(faults.map(({ path }) => path.join("."))).toEqual([where]);
    expect(faults[0]?.message).toBeTruthy();
    expect(faults[0]?.expected).toBeTruthy();
  });

  it("reports every fault, not only the first", () => {
    expect(read([{ $step: 1 }, { $input: 2 }, { a: { $variable: 3, default: { $from: 1 } } }]).faults).toHaveLength(4);
  });
});

describe("a flow", () => {
  const refusal = (document: Json) => {
    try {
      readFlow(document);
    } catch (error) {
      return (error as { detail: { field: string } }).detail.field;
    }
    return undefined;
  };
  const step = { id: "a", component: "/x" };

  it("has defaults for all that it does not set", () => {
    expect(readFlow({ steps: [step] })).toMatchObject({
      name: null,
      steps: [{ id: "a", component: "/x", input: { kind: "literal", value: null }, onError: { action: "fail" }, mustExecute: false }],
      output: { kind: "literal", value: null },
      schemas: { input: null, output: null, variables: null, steps: {}, defs: {} },
    });
    expect(readFlow({}).steps).toEqual([]);
  });

  it("ignores what it does not know, also the schemas that it once had on top and in steps", () => {
    const flow = {
      schema: "https://stepflow.org/schemas/v1/flow.json",
      inputSchema: { type: "string" },
      steps: [{ ...step, skipIf: 1, outputSchema: {} }],
      metadata: { a: 1 },
    };
    expect(readFlow(flow).schemas.input).toBeNull();
  });

  it("reads what is to be done about errors", () => {
    const onError = (value: Json) => readFlow({ steps: [{ ...step, onError: value }] }).steps[0]?.onError;
    expect(onError({ action: "useDefault" })).toEqual({ action: "useDefault", value: null });
    expect(onError({ action: "useDefault", defaultValue: { $step: "x" } })).toEqual({ action: "useDefault", value: { $step: "x" } });
    expect(onError({ action: "retry" })).toEqual({ action: "retry", retries: 3 });
    expect(onError({ action: "retry", maxRetries: 0 })).toEqual({ action: "retry", retries: 0 });
    expect(onError(null)).toEqual({ action: "fail" });
  });

  it("reads its schemas from one JSON Schema, and examples from test cases too", () => {
    const flow = readFlow({
      schemas: {
        type: "object",
        properties: { input: { type: "string" }, steps: { properties: { a: { $ref: "#/$defs/x" } } } },
        $defs: { x: {} },
      },
      examples: [{ name: "one", input: 1 }],
      test: { cases: [{ name: "two", description: "d", input: 2, output: { outcome: "success", result: 2 } }] },
    });
    expect(flow.schemas).toMatchObject({ input: { type: "string" }, steps: { a: { $ref: "#/$defs/x" } }, defs: { x: {} } });
    expect(flow.examples.map(({ name, input }) => [name, input])).toEqual([
      ["one", 1],
      ["two", 2],
    ]);
  });

  it.each<[string, Json, string]>([
    ["is not an object", [], ""],
    ["has a name that is none", { name: 1 }, "name"],
    ["has a name that is too long", { name: "x".repeat(1_001) }, "name"],
    ["has steps that are not a list", { steps: {} }, "steps"],
    ["has a step that is not an object", { steps: [1] }, "steps[0]"],
    ["has a step without an id", { steps: [{ component: "/x" }] }, "steps[0]"],
    ["has a step whose id is not a text", { steps: [{ id: 1, component: "/x" }] }, "steps[0].id"],
    ["has a step whose id is too long", { steps: [{ id: "x".repeat(257), component: "/x" }] }, "steps[0].id"],
    ["has a step with a NUL in its id", { steps: [{ id: "a\u0000", component: "/x" }] }, "steps[0].id"],
    ["has a step without a component", { steps: [{ id: "a" }] }, "steps[0]"],
    ["has a step that must perhaps", { steps: [{ ...step, mustExecute: "yes" }] }, "steps[0].mustExecute"],
    ["has an onError that is not an object", { steps: [{ ...step, onError: "fail" }] }, "steps[0].onError"],
    ["has an action that does not exist", { steps: [{ ...step, onError: { action: "skip" } }] }, "steps[0].onError.action"],
    ["has half a retry", { steps: [{ ...step, onError: { action: "retry", maxRetries: 1.5 } }] }, "steps[0].onError.maxRetries"],
    ["has retries below zero", { steps: [{ ...step, onError: { action: "retry", maxRetries: -1 } }] }, "steps[0].onError.maxRetries"],
    ["has a map of schemas", { schemas: { input: { type: "string" } } }, "schemas.input"],
    ["has schemas of another type", { schemas: { type: "array" } }, "schemas.type"],
    ["has schemas that are not an object", { schemas: [] }, "schemas"],
    ["has examples that are not a list", { examples: {} }, "examples"],
    ["has a case that is not an object", { test: { cases: [1] } }, "test.cases[0]"],
  ])("that %s is refused, with the field", (_, document, field) => {
    expect(refusal(document)).toBe(field);
  });
});
