// Outcomes of flows that need no worker: the components are played by the test.

import { describe, expect, it } from "vitest";
import { type Component, either, fails, openFlows, ref, step, succeeds } from "../../../../test/support/flow-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { orchestratorError } from "./result.ts";

/** Chooses the result by the input's text, as a mock plugin does; an input that is not there breaks the plugin. */
const behaves =
  (id: string, behaviours: { [input: string]: Json }): Component =>
  (input) => {
    const key = JSON.stringify(input);
    if (Object.hasOwn(behaviours, key)) return { result: behaviours[key] as Json };
    const causes = [`the mock has no behaviour for ${key}`];
    return { error: orchestratorError("UNREACHABLE", `step "${id}" failed`, causes) };
  };

const chained: JsonObject = {
  name: "chained",
  steps: [
    { id: "step1", component: "/mock/one", input: { $input: "$" } },
    { id: "step2", component: "/mock/two", input: ref("step1", "a") },
  ],
  output: { name: ref("step1", "a"), x: ref("step2", "x"), y: ref("step2", "y") },
};
const one = behaves("step1", { '{"first":"a"}': { a: "b" }, '{"first":"hello"}': { a: "world" } });
const two = behaves("step2", { '"b"': { x: 1, y: 2 }, '"world"': { x: 2, y: 8 } });

describe("flow outcomes", () => {
  it("[S9-2] a flow without steps re-arranges its input", async () => {
    const { run } = await openFlows();
    const output = {
      name: { $input: "name" },
      first: { $input: "$.list[0]" },
      deep: { all: { $input: "$.a.b['x y']" } },
      list: [{ $input: "" }],
    };
    const input = { name: "Ann", list: [7, 8], a: { b: { "x y": true } } };
    expect((await run({ output }, input)).result).toEqual({
      outcome: "success",
      result: { name: "Ann", first: 7, deep: { all: true }, list: [input] },
    });
  });

  it.each([
    ["a", { name: "b", x: 1, y: 2 }],
    ["hello", { name: "world", x: 2, y: 8 }],
  ])("[S9-7] two chained steps answer %s by what the first gave the second", async (first, result) => {
    const { run } = await openFlows();
    expect((await run(chained, { first }, { one, two })).result).toEqual({ outcome: "success", result });
  });

  it("a plugin that cannot be reached is tried again, and its error is reported with the stack", async () => {
    const { run } = await openFlows();
    const { result, calls } = await run(chained, { first: "nobody" }, { one, two });
    const stack = [
      { error: 'step "step1" failed', attachments: [] },
      { error: 'the mock has no behaviour for {"first":"nobody"}', attachments: [] },
    ];
    expect(result).toEqual({ outcome: "failed", error: { code: "UNREACHABLE", message: 'step "step1" failed', data: { stack } } });
    expect(calls).toEqual({ one: 4 });
  });

  const single = (parts: JsonObject = {}): JsonObject => ({ steps: [step("s", { $input: "mode" }, parts)], output: { out: ref("s") } });
  const moody: Component = (input) =>
    input === "error"
      ? { error: { code: "COMPONENT_FAILED", message: "test error", data: { why: [1] } } }
      : { result: `was ${String(input)}` };

  it("[S9-9] a component that fails fails its run with the same code, message and data", async () => {
    const { run } = await openFlows();
    const { result, calls } = await run(single(), { mode: "error" }, { s: moody });
    expect(result).toEqual({ outcome: "failed", error: { code: "COMPONENT_FAILED", message: "test error", data: { why: [1] } } });
    expect(calls).toEqual({ s: 1 });
  });

  it("[S9-10] an empty default is null, and the run succeeds", async () => {
    const { run } = await openFlows();
    const flow = single({ onError: { action: "useDefault" } });
    expect((await run(flow, { mode: "error" }, { s: moody })).result).toEqual({ outcome: "success", result: { out: null } });
    expect((await run(flow, { mode: "fine" }, { s: moody })).result).toEqual({ outcome: "success", result: { out: "was fine" } });
  });

  it("[S9-11] a default replaces the failed value, exactly as written", async () => {
    const { run } = await openFlows();
    const value = { $step: "not an expression" };
    const flow = single({ onError: { action: "useDefault", defaultValue: value } });
    expect((await run(flow, { mode: "error" }, { s: moody })).result).toEqual({ outcome: "success", result: { out: value } });
  });

  it("[S9-12] a step that may be tried twice more fails after three attempts, and one that succeeds is tried once", async () => {
    const { run } = await openFlows();
    const flow = single({ onError: { action: "retry", maxRetries: 2 } });
    const failed = await run(flow, { mode: "error" }, { s: moody });
    expect(failed.result).toMatchObject({ outcome: "failed", error: { code: "COMPONENT_FAILED", message: "test error" } });
    expect(failed.calls).toEqual({ s: 3 });
    expect((await run(flow, { mode: "fine" }, { s: moody })).calls).toEqual({ s: 1 });
  });

  const branching: JsonObject = {
    steps: [step("yes"), step("no")],
    output: either({ $input: "go" }, ref("yes"), ref("no")),
  };

  it("[S9-13] only the chosen branch is executed, although the other would fail", async () => {
    const { run } = await openFlows();
    const { result, calls } = await run(branching, { go: true }, { yes: succeeds("fine"), no: fails() });
    expect(result).toEqual({ outcome: "success", result: "fine" });
    expect(calls).toEqual({ yes: 1 });
  });

  it("[S9-14] the other branch is executed when the condition is false, and its failure is reported", async () => {
    const { run } = await openFlows();
    const { result, calls } = await run(branching, { go: false }, { yes: succeeds("fine"), no: fails("not this way") });
    expect(result).toEqual({ outcome: "failed", error: { code: "COMPONENT_FAILED", message: "not this way" } });
    expect(calls).toEqual({ no: 1 });
  });
});

it("has the default of a step that was cancelled alone while its worker holds it, in each step that reads it", async () => {
  const world = await openFlows();
  const onError = { action: "useDefault", defaultValue: "d" };
  const id = await world.start({ steps: [step("a", null, { onError }), step("b", ref("a"))], output: [ref("a"), ref("b")] });
  const held = await world.claim("a");
  await world.board.cancel(held?.id ?? "");
  expect(await world.work("b", { result: "b" })).toBe("d");
  expect(await world.result(id)).toEqual({ outcome: "success", result: ["d", "b"] });
});
