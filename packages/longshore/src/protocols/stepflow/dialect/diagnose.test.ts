import { describe, expect, it } from "vitest";
import { either, ref } from "../../../../test/support/flow-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { diagnose } from "./diagnose.ts";
import { type DiagnosticKind, diagnosticCodes } from "./diagnostic.ts";
import { readFlow } from "./flow.ts";
import type { ComponentFact, RouteFacts } from "./route-facts.ts";

const head = { name: "n", description: "d" };
const object = (properties: JsonObject, parts: JsonObject = {}): JsonObject => ({ type: "object", properties, ...parts });
const schemas = (parts: JsonObject): JsonObject => ({ schemas: object(parts) });
const step = (id: string, input: Json = null, parts: JsonObject = {}): JsonObject => ({ id, component: "/python/udf", input, ...parts });

/** A configuration with the built-ins, a worker for everything else, and a mock. */
const facts = (parts: Partial<RouteFacts> = {}): RouteFacts => ({
  plugins: ["builtin", "python", "mock"],
  routes: [
    { path: "/builtin", plugins: ["builtin"] },
    { path: "/python", plugins: ["python"] },
    { path: "/mock", plugins: ["mock"] },
  ],
  candidates(component): ComponentFact[] {
    const [, prefix = "", rest = ""] = /^\/([^/]+)(\/.*)?$/.exec(component) ?? [];
    if (prefix === "mock")
      return [
        {
          ...{ plugin: "mock", type: "mock", remainder: rest },
          inputSchema: object(
            { text: { type: "string" }, list: { type: "array", items: { type: "integer" } } },
            { required: ["text"], additionalProperties: false },
          ),
          outputSchema: object({ size: { type: "integer" } }),
        },
      ];
    return prefix === "builtin" || prefix === "python"
      ? [{ plugin: prefix, type: prefix === "builtin" ? "builtin" : "grpc", remainder: rest }]
      : [];
  },
  ...parts,
});

const found = (flow: JsonObject, options: Parameters<typeof diagnose>[1] = {}) =>
  diagnose(readFlow({ ...head, ...flow }), options).map(({ kind, path }) => `${kind} ${path}`);

describe("diagnostics", () => {
  it("are empty for a correct flow", () => {
    const flow = { ...schemas({ input: object({ q: { type: "string" } }) }), steps: [step("a", { $input: "q" })], output: ref("a") };
    expect(found(flow, { routes: facts() })).toEqual([]);
  });

  it("have a code, a level by its thousands, a path and a sentence", () => {
    const [fatal, error, warning] = diagnose(
      readFlow({ name: "n", steps: [step("a", ref("a"))], output: [ref("a"), { $variable: "x" }], ...schemas({ variables: object({}) }) }),
    );
    expect(fatal).toEqual({
      ...{ kind: "selfReference", code: 3002, level: "fatal", at: ["steps", 0, "input"], path: "$.steps[0].input", experimental: false },
      ...{ message: "Step 'a' references itself", expected: "the id of an earlier step" },
    });
    expect(error).toMatchObject({ kind: "missingFlowDescription", code: 1002, level: "warning", path: "$.description" });
    expect(warning).toMatchObject({ kind: "undefinedRequiredVariable", code: 2005, level: "error", path: "$.output[1]" });
  });

  const cases: [DiagnosticKind, JsonObject, string, Parameters<typeof diagnose>[1]?][] = [
    ["unreachableStep", { steps: [step("a"), step("b", ref("a"))], output: ref("a") }, "$.steps[1]"],
    ["missingFlowName", { name: " ", output: 1 }, "$.name"],
    ["missingFlowDescription", { description: null, output: 1 }, "$.description"],
    ["unvalidatedFieldAccess", { output: { $input: "q" } }, "$.output"],
    ["missingVariableSchema", { output: { $variable: "q" } }, "$.schemas.properties.variables"],
    ["untypedComponentOutput", { steps: [step("a")], output: ref("a") }, "$.steps[0]", { typeCheck: true }],
    [
      "typeCheckIndeterminate",
      { ...schemas({ output: { type: "string" } }), steps: [step("a")], output: ref("a") },
      "$.output",
      { typeCheck: true },
    ],
    ["noPluginsConfigured", { output: 1 }, "$.plugins", { routes: facts({ plugins: [], routes: [{ path: "/", plugins: [] }] }) }],
    ["noRoutingRulesConfigured", { output: 1 }, "$.routes", { routes: facts({ plugins: [], routes: [] }) }],
    ["unusedPlugin", { output: 1 }, "$.plugins.spare", { routes: facts({ plugins: ["builtin", "python", "mock", "spare"] }) }],
    ["mockComponent", { steps: [{ id: "a", component: "/mock/x" }], output: ref("a") }, "$.steps[0].component", { routes: facts() }],
    ["invalidFieldAccess", { ...schemas({ input: { type: "string" } }), output: { a: { $input: "$.q" } } }, "$.output.a"],
    ["emptyComponentName", { steps: [{ id: "a", component: "/" }], output: ref("a") }, "$.steps[0].component", { routes: facts() }],
    [
      "schemaViolation",
      { ...schemas({ input: object({ q: { type: "string" } }) }), examples: [{ name: "e", input: { q: 1 } }], output: 1 },
      "$.examples[0].input.q",
    ],
    [
      "invalidSubflowLiteral",
      { steps: [{ id: "m", component: "/builtin/map", input: { workflow: { $literal: { steps: 1 } }, items: [] } }], output: ref("m") },
      "$.steps[0].input.workflow",
      { routes: facts() },
    ],
    ["undefinedVariable", { ...schemas({ variables: object({}) }), output: { $variable: "q", default: 1 } }, "$.output"],
    ["undefinedRequiredVariable", { ...schemas({ variables: object({}) }), output: { $variable: "q" } }, "$.output"],
    ["typeMismatch", { ...schemas({ output: { type: "string" } }), output: 1 }, "$.output", { typeCheck: true }],
    [
      "unknownPropertyInPath",
      { ...schemas({ input: object({ q: {} }, { additionalProperties: false }) }), output: { $input: "p" } },
      "$.output",
    ],
    [
      "invalidRouteReference",
      { output: 1 },
      "$.routes./x[0].plugin",
      { routes: facts({ plugins: [], routes: [{ path: "/x", plugins: ["none"] }] }) },
    ],
    ["invalidComponent", { steps: [{ id: "a", component: "python/udf" }], output: ref("a") }, "$.steps[0].component", { routes: facts() }],
    ["duplicateStepId", { steps: [step("a"), step("a")], output: ref("a") }, "$.steps[1].id"],
    ["emptyStepId", { steps: [step(" ")], output: 1 }, "$.steps[0].id"],
    ["selfReference", { steps: [step("a", [either(ref("a"), 1)])], output: ref("a") }, "$.steps[0].input[0].$if"],
    ["undefinedStepReference", { steps: [step("a", ref("b")), step("b")], output: [ref("a"), ref("b")] }, "$.steps[0].input"],
    ["invalidReferenceExpression", { output: { a: { $from: { step: "b" } } } }, "$.output.a.$from"],
    [
      "unusablePattern",
      schemas({ variables: object({ v: { anyOf: [{ type: "string", pattern: "^(?=a)b$" }] } }) }),
      "$.schemas.properties.variables.properties.v.anyOf[0].pattern",
    ],
    [
      "unusablePattern",
      {
        schemas: { ...object({ variables: object({ v: { $ref: "#/$defs/V" } }) }), $defs: { V: { items: { pattern: "(a)\\1" } } } },
      },
      "$.schemas.$defs.V.items.pattern",
    ],
  ];

  it.each(cases)("report %s", (kind, flow, path, options) => {
    expect(found(flow, options)).toContain(`${kind} ${path}`);
  });

  it("distinguish a later step from a missing one", () => {
    const flow = { steps: [step("a", [ref("b"), ref("c")]), step("b", ref("a"))], output: ref("b") };
    const told = diagnose(readFlow({ ...head, ...flow })).filter(({ kind }) => kind === "undefinedStepReference");
    expect(told.map(({ message }) => message)).toEqual([
      "Step 'a' references step 'b', which comes later",
      "Step 'a' references undefined step 'c'",
    ]);
  });

  it("know every code of the language, and each is provoked above", () => {
    expect(new Set(cases.map(([kind]) => kind))).toEqual(new Set(Object.keys(diagnosticCodes)));
  });

  it("are not alarmed by what is well: open schemas, choices, defaults and nested variables", () => {
    const flow = {
      ...schemas({
        input: object({ a: object({}), b: { type: "array", items: object({ c: {} }) } }),
        variables: object({ v: object({ w: { type: "string" } }) }),
        steps: object({ s: { $ref: "#/$defs/thing" } }),
      }),
      steps: [step("s", null, { onError: { action: "useDefault", defaultValue: { id: 1 } } }), step("t", null, { mustExecute: true })],
      output: [{ $input: "$.a.anything" }, { $input: "$.b[3].c" }, { $variable: "$.v.w" }, ref("s", "id"), { $coalesce: [ref("s"), null] }],
    };
    const withDefs = {
      ...flow,
      schemas: { ...((flow as JsonObject).schemas as JsonObject), $defs: { thing: object({ id: { type: "integer" } }) } },
    };
    expect(found(withDefs)).toEqual([]);
  });

  it("report that a step without a route has no component", () => {
    expect(found({ steps: [{ id: "a", component: "/elsewhere/x" }], output: ref("a") }, { routes: facts() })).toEqual([
      "invalidComponent $.steps[0].component",
    ]);
  });

  it("look into inline flows in the input of a component", () => {
    const inner = { ...head, steps: [{ id: "x", component: "/python/udf", input: ref("y") }], output: ref("x") };
    const outer = (component: string, input: Json) =>
      found({ steps: [{ id: "m", component, input }], output: ref("m") }, { routes: facts() });
    const where = "undefinedStepReference $.steps[0].input";
    expect(outer("/builtin/map", { workflow: { $literal: inner }, items: { $input: "$" } })).toEqual([`${where}.workflow.steps[0].input`]);
    expect(outer("/builtin/iterate", { flow: { $literal: inner } })).toEqual([`${where}.flow.steps[0].input`]);
    expect(outer("/builtin/put_blob", { data: { $literal: inner }, blob_type: "flow" })).toEqual([`${where}.data.steps[0].input`]);
    expect(outer("/builtin/put_blob", { data: { $literal: inner }, blob_type: "data" })).toEqual([]);
    expect(outer("/python/map", { workflow: { $literal: inner } })).toEqual([]);
  });

  describe("of types", () => {
    const check = (input: Json) =>
      found({ steps: [{ id: "a", component: "/mock/x", input }], output: ref("a") }, { routes: facts(), typeCheck: true });
    const mock = "mockComponent $.steps[0].component";

    it("hold what a component is given against what it takes", () => {
      expect(check({ text: "a", list: [1] })).toEqual([mock]);
      expect(check({ text: 1 })).toEqual([mock, "typeMismatch $.steps[0].input.text"]);
      expect(check({ list: [{ $input: "$" }] })).toEqual([
        mock,
        "typeMismatch $.steps[0].input",
        "typeCheckIndeterminate $.steps[0].input.list[0]",
      ]);
      expect(check({ text: { $literal: "x" }, other: { $input: "$" } })).toEqual([mock, "typeMismatch $.steps[0].input.other"]);
      expect(check(["x"])).toEqual([mock, "typeMismatch $.steps[0].input"]);
      expect(check([{ $input: "$" }])).toEqual([mock, "typeMismatch $.steps[0].input"]);
      expect(check({ text: either({ $input: "$" }, "a", 1) })).toEqual([mock, "typeMismatch $.steps[0].input.text.else"]);
      expect(check({ text: { $coalesce: [null, 2, "a"] } })).toEqual([mock, "typeMismatch $.steps[0].input.text.$coalesce[1]"]);
    });

    it("know what a component gives, and what the input is", () => {
      const flow = (output: Json, type: string) =>
        found(
          {
            ...schemas({ input: object({ n: { type: "number" } }), output: { type } }),
            steps: [{ id: "a", component: "/mock/x", input: { text: "t" } }],
            output,
          },
          { routes: facts(), typeCheck: true },
        ).filter((each) => each !== mock);
      expect(flow(ref("a", "size"), "integer")).toEqual([]);
      expect(flow(ref("a", "size"), "number")).toEqual([]);
      expect(flow(ref("a", "size"), "string")).toEqual(["typeMismatch $.output"]);
      expect(flow([{ $input: "n" }, ref("a")], "array")).toEqual([]);
      expect(flow({ $input: "n" }, "boolean")).toEqual(["unreachableStep $.steps[0]", "typeMismatch $.output"]);
    });
  });

  it("check defaults against the schemas of what they replace", () => {
    const flow = {
      ...schemas({ variables: object({ v: { type: "integer", default: "x" } }), steps: object({ a: { type: "string" } }) }),
      steps: [step("a", { $variable: "v" }, { onError: { action: "useDefault", defaultValue: 1 } })],
      output: ref("a"),
    };
    expect(found(flow)).toEqual([
      "schemaViolation $.steps[0].onError.defaultValue",
      "schemaViolation $.schemas.properties.variables.properties.v.default",
    ]);
  });
});
