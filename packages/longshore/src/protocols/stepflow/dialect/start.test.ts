import { describe, expect, it } from "vitest";
import { openFlows, ref, step, succeeds } from "../../../../test/support/flow-world.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { mergePatch } from "./overrides.ts";
import { encodeFlow, flowIdOf } from "./source.ts";
import { prepareRun, type RunOptions } from "./start.ts";

const refusal = (flow: JsonObject, parts: Partial<RunOptions>) => {
  try {
    prepareRun({ source: encodeFlow(flow), input: null, ...parts });
  } catch (error) {
    if (error instanceof LongshoreError) return { code: error.code, message: error.message, ...error.detail };
    throw error;
  }
  return undefined;
};

describe("overrides", () => {
  const flow = {
    name: "f",
    steps: [step("a", { model: "small", temperature: 1, deep: { x: 1, y: 2 } }), step("b", ref("a"))],
    output: ref("b"),
  };
  const given = async (overrides: Json) => {
    const world = await openFlows();
    const { id, steps } = await world.run(
      flow,
      null,
      { a: (input) => ({ result: input }), b: (input) => ({ result: input }) },
      { overrides },
    );
    return { run: await world.found(id), a: steps.a };
  };

  it("are merged into the steps of one run, in either spelling", async () => {
    const value = { input: { temperature: 0, deep: { y: null, z: [3] } } };
    const spellings: Json[] = [{ steps: { a: { $type: "merge_patch", value } } }, { a: { value } }];
    for (const overrides of spellings) {
      const { a } = await given(overrides);
      expect(a).toEqual({ outcome: "success", result: { model: "small", temperature: 0, deep: { x: 1, z: [3] } } });
    }
  });

  it("do not change the flow: the run is one of the same flow, by another definition", async () => {
    const { run } = await given({ a: { value: { input: 1 } } });
    const flowId = flowIdOf(encodeFlow(flow));
    expect(run).toMatchObject({ workflow: "f", settings: expect.stringContaining(flowId) });
    expect(run.definitionId).not.toBe(flowId);
    const nothing: Json[] = [null, {}, { steps: {} }, { steps: null }];
    for (const none of nothing) expect((await given(none)).run.definitionId).toBe(flowId);
  });

  it("may change the component and what is done about errors", async () => {
    const { run, result } = await (async () => {
      const world = await openFlows();
      const overrides = { steps: { a: { value: { component: "/nowhere/x", onError: { action: "useDefault", defaultValue: 5 } } } } };
      const played = await world.run(flow, null, { b: (input) => ({ result: input }) }, { overrides });
      return { run: played.id, result: played.result };
    })();
    expect([typeof run, result]).toEqual(["string", { outcome: "success", result: 5 }]);
  });

  it("reach a step that is called steps", async () => {
    const world = await openFlows();
    const named = { steps: [step("steps", 1)], output: ref("steps") };
    const { result } = await world.run(
      named,
      null,
      { steps: (input) => ({ result: input }) },
      { overrides: { steps: { value: { input: 2 } } } },
    );
    expect(result).toEqual({ outcome: "success", result: 2 });
  });

  it.each<[string, Json, string]>([
    ["name a step that is not there", { steps: { c: { value: {} } } }, "overrides.steps.c"],
    ["name a step that is not there, unwrapped", { c: { value: {} } }, "overrides.c"],
    ["are not an object", [], "overrides"],
    ["have a patch that is not an object", { a: 1 }, "overrides.a"],
    ["have nothing to merge", { a: {} }, "overrides.a.value"],
    ["are a JSON Patch", { a: { $type: "json_patch", value: [] } }, "overrides.a.$type"],
    ["are of no known type", { a: { $type: "x", value: {} } }, "overrides.a.$type"],
    ["make a step refer to nothing", { a: { value: { input: ref("b") } } }, "overrides: $.steps[0].input"],
    ["take away what a step needs", { a: { value: { component: null } } }, "overrides: steps[0]"],
  ])("that %s are refused, with the field", (_, overrides, field) => {
    expect(refusal(flow, { overrides })).toMatchObject({ code: "LONGSHORE_BAD_INPUT", field });
  });

  it("follow RFC 7396 to the letter", () => {
    const cases: [Json, Json, Json][] = [
      [{ a: "b" }, { a: "c" }, { a: "c" }],
      [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
      [{ a: "b" }, { a: null }, {}],
      [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
      [{ a: ["b"] }, { a: "c" }, { a: "c" }],
      [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
      [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
      [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
      [
        ["a", "b"],
        ["c", "d"],
        ["c", "d"],
      ],
      [{ a: "b" }, ["c"], ["c"]],
      [{ a: "foo" }, null, null],
      [{ a: "foo" }, "bar", "bar"],
      [{ e: null }, { a: 1 }, { e: null, a: 1 }],
      [[1, 2], { a: "b", c: null }, { a: "b" }],
      [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    ];
    for (const [target, patch, result] of cases) expect(mergePatch(target, patch)).toEqual(result);
    expect(JSON.stringify(mergePatch({}, JSON.parse('{"__proto__":{"a":1}}') as Json))).toBe('{"__proto__":{"a":1}}');
  });
});

describe("variables", () => {
  const variables = {
    type: "object",
    properties: {
      name: { type: "string", description: "whom to greet" },
      count: { type: "integer", default: 2, minimum: 1 },
      text: { type: "string" },
      number: { type: "number" },
      flag: { type: "boolean" },
      thing: { type: "object" },
      key: { type: "string", env_var: "API_KEY", is_secret: true },
      limit: { type: "integer", env_var: "LIMIT" },
    },
    required: ["name"],
  };
  const flow: JsonObject = { schemas: { type: "object", properties: { variables } }, output: { $variable: "$" } };
  const prepared = (parts: Partial<RunOptions>) =>
    JSON.parse(prepareRun({ source: encodeFlow(flow), input: null, ...parts }).run.variables ?? "{}") as JsonObject;

  it("[S9-63] have defaults by their schema, else nothing of their type", () => {
    expect(prepared({ variables: { name: "Ann", extra: [1] } })).toEqual({
      ...{ name: "Ann", extra: [1], count: 2, text: "", number: 0, flag: false, thing: null, key: "", limit: 0 },
    });
  });

  it("[S9-63] that are required must be given", () => {
    expect(refusal(flow, {})).toEqual({
      code: "LONGSHORE_BAD_INPUT",
      message: 'The variable "name" is required and was not given.',
      field: "variables.name",
      expected: "a value of type string",
    });
  });

  it("[S9-63] are taken from the environment when they are not given", () => {
    const environment = (name: string) => ({ API_KEY: "s3cret", LIMIT: "7", STEPFLOW_VAR_TEXT: "t", STEPFLOW_VAR_NAME: "Bob" })[name];
    expect(prepared({ variables: { name: "Ann" }, environment })).toMatchObject({ key: "s3cret", limit: 7, text: "", name: "Ann" });
    expect(prepared({ environment, prefixed: true })).toMatchObject({ name: "Bob", text: "t", key: "s3cret" });
    expect(refusal(flow, { variables: { name: "A" }, environment: (name) => (name === "LIMIT" ? "many" : undefined) })).toMatchObject({
      field: "variables.limit",
    });
  });

  it("[S9-63] are refused when they do not fit their schema, and a secret is not disclosed", () => {
    expect(refusal(flow, { variables: { name: 7 } })).toMatchObject({ field: "variables.name", expected: "a value of type string" });
    expect(refusal(flow, { variables: { name: "A", count: 0 } })).toMatchObject({ field: "variables.count" });
    expect(refusal(flow, { variables: { name: 7 } })?.message).toContain('The variable "name" is 7, which does not fit');
    const secret = refusal(flow, { variables: { name: "A", key: 12345 } })?.message;
    expect(secret).toContain('The variable "key" is [REDACTED], which does not fit');
    expect(secret).not.toContain("12345");
    expect(refusal(flow, { variables: { name: "x".repeat(9).split("") } })?.message.length).toBeLessThan(300);
    expect(refusal(flow, { variables: [] })).toMatchObject({ field: "variables" });
    const closed = { ...flow, schemas: { type: "object", properties: { variables: { ...variables, additionalProperties: false } } } };
    expect(refusal(closed, { variables: { name: "A", extra: 1 } })).toMatchObject({ field: "variables.extra" });
  });

  it("that are given as null are null", () => {
    const open = {
      schemas: { type: "object", properties: { variables: { type: "object", properties: { x: { default: 1 } } } } },
      output: { $variable: "x" },
    };
    expect(prepareRun({ source: encodeFlow(open), input: null, variables: { x: null } }).run.variables).toBe('{"x":null}');
  });

  it("are what a flow reads, with or without a schema, and fail a step that reads a missing one", async () => {
    const { run, runs, result, play, engine } = await openFlows();
    expect((await run({ output: { $variable: "$.a.b" } }, null, {}, { variables: { a: { b: 1 } } })).result).toEqual({
      outcome: "success",
      result: 1,
    });
    expect((await run({ output: { $variable: "a" } }, null)).result).toMatchObject({
      error: { code: "EXPRESSION_FAILURE", message: 'the variable "a" is not defined' },
    });
    // Started by name, without any settings of a run.
    const source = encodeFlow({ ...flow, output: [{ $variable: "count" }, { $variable: "text" }] });
    await runs.define({ name: "plain", dialect: "stepflow", source });
    const started = await runs.start({ workflow: "plain", input: "null" });
    await play(started.run.id, {});
    expect(await result(started.run.id)).toEqual({ outcome: "success", result: [2, ""] });
    expect(engine.openRuns()).toBe(0);
  });
});

describe("a run", () => {
  it("of a flow without a name has one made from its id", () => {
    const source = encodeFlow({ output: 1 });
    const { flowId, run, definition } = prepareRun({ source, input: { a: 1 } });
    expect(flowId).toBe(flowIdOf(source));
    expect([run.workflow, definition.name]).toEqual([`flow-${flowId.slice(0, 12)}`, `flow-${flowId.slice(0, 12)}`]);
    expect([definition.id, run.definitionId, run.input]).toEqual([flowId, flowId, '{"a":1}']);
  });

  it("has an id that is the hash of its compact JSON", () => {
    const golden = { message: "Hello, blobs!", number: 42, nested: { array: [1, 2, 3], boolean: true } };
    expect(flowIdOf(encodeFlow(golden))).toBe("868591347a854ba1d0f4875b2dd44e1e8335052af03725a9819f89e0142318b0");
  });

  it.each([0, -1, 1.5, Number.NaN, 1_000_001])("with %d steps in flight is refused", (maxConcurrency) => {
    expect(refusal({ output: 1 }, { maxConcurrency })).toMatchObject({ code: "LONGSHORE_BAD_INPUT", field: "maxConcurrency" });
  });

  it("that is run again keeps its overrides, variables and limit, and has no parent", async () => {
    const { runs, run, found, play, result } = await openFlows();
    const flow = { steps: [step("a", { $variable: "v" })], output: ref("a") };
    const echo = (input: Json) => ({ result: input });
    const parts = {
      variables: { v: 1 },
      maxConcurrency: 3,
      overrides: { a: { value: { input: [{ $variable: "v" }] } } },
      sub: { rootRunId: "r" },
    };
    const { id } = await run(flow, null, { a: echo }, parts);
    const again = (await runs.rerun(id))?.id as string;
    await play(again, { a: echo });
    expect(await result(again)).toEqual({ outcome: "success", result: [1] });
    const { flowId } = JSON.parse((await found(id)).settings ?? "") as { flowId: string };
    expect(JSON.parse((await found(again)).settings ?? "")).toEqual({ flowId, maxConcurrency: 3 });
  });

  it("starts the flow that has the name at the second start", async () => {
    const { runs, play, result } = await openFlows();
    const outcomes = [];
    for (const output of [1, 2, 1]) {
      await runs.define({
        name: "f",
        dialect: "stepflow",
        source: encodeFlow({ name: "f", steps: [step("a")], output: [output, ref("a")] }),
      });
      const { run } = await runs.start({ workflow: "f", input: "null" });
      await play(run.id, { a: succeeds("x") });
      outcomes.push(await result(run.id));
    }
    expect(outcomes).toMatchObject([{ result: [1, "x"] }, { result: [2, "x"] }, { result: [1, "x"] }]);
  });
});
