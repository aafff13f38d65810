// What runs and what does not, what a failure means, and how many steps are in flight.

import { describe, expect, it } from "vitest";
import { either, fails, openFlows, ref, step, succeeds } from "../../../../test/support/flow-world.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";

const boom = { outcome: "failed", error: { code: "COMPONENT_FAILED", message: "boom" } };

describe("laziness", () => {
  it("runs what the output needs and what must be executed, and no other step", async () => {
    const { run } = await openFlows();
    const flow = {
      steps: [step("a"), step("b", ref("a")), step("unused", ref("a")), step("must", null, { mustExecute: true })],
      output: ref("b"),
    };
    const { calls, steps } = await run(flow, null, { a: succeeds(1), b: succeeds(2), unused: succeeds(3), must: succeeds(4) });
    expect(calls).toEqual({ a: 1, b: 1, must: 1 });
    expect(Object.keys(steps)).toEqual(["a", "b", "must"]);
  });

  it("runs nothing for an output that needs nothing", async () => {
    const { run } = await openFlows();
    expect((await run({ steps: [step("a")] }, null)).result).toEqual({ outcome: "success", result: null });
  });

  it("evaluates a condition as soon as it can, while other steps still run", async () => {
    const world = await openFlows();
    const flow = {
      steps: [
        step("asked"),
        step("slow"),
        step("yes"),
        step("no"),
        step("end", { slow: ref("slow"), either: either(ref("asked"), ref("yes"), ref("no")) }),
      ],
      output: ref("end"),
    };
    const id = await world.start(flow);
    await world.work("asked", { result: false });
    expect(await world.claim("yes")).toBeUndefined();
    await world.work("no", { result: "n" });
    expect(await world.claim("end")).toBeUndefined();
    await world.work("slow", { result: "s" });
    expect(await world.work("end", { result: 1 })).toEqual({ slow: "s", either: "n" });
    expect(await world.result(id)).toEqual({ outcome: "success", result: 1 });
  });

  it.each<[string, Json, boolean]>([
    ["null", null, false],
    ["false", false, false],
    ["true", true, true],
    ["0", 0, true],
    ["an empty text", "", true],
    ["an empty list", [], true],
    ["an empty object", {}, true],
  ])("takes %s for what it is in a condition", async (_, value, truth) => {
    const { run } = await openFlows();
    const flow = { steps: [step("asked"), step("yes"), step("no")], output: either(ref("asked"), ref("yes"), ref("no")) };
    const { calls } = await run(flow, null, { asked: succeeds(value), yes: succeeds(1), no: succeeds(2) });
    expect(calls).toEqual({ asked: 1, [truth ? "yes" : "no"]: 1 });
  });

  it("takes a condition that failed for false, and gives null where there is no else", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("asked"), step("yes")], output: [either(ref("asked"), ref("yes")), either({ $input: "none" }, 1, 2)] };
    const { result, calls } = await run(flow, {}, { asked: fails(), yes: succeeds(1) });
    expect(result).toEqual({ outcome: "success", result: [null, 2] });
    expect(calls).toEqual({ asked: 1 });
  });

  it("follows a coalesce only as far as it must, and stops at a failure", async () => {
    const { run } = await openFlows();
    const steps = [step("a"), step("b"), step("c")];
    const flow = { steps, output: { $coalesce: [{ $input: "given" }, ref("a"), ref("b"), ref("c")] } };
    const components = { a: succeeds(null), b: succeeds(2), c: fails() };
    expect((await run(flow, { given: 1 }, components)).calls).toEqual({});
    const taken = await run(flow, { given: null }, components);
    expect([taken.result, taken.calls]).toEqual([
      { outcome: "success", result: 2 },
      { a: 1, b: 1 },
    ]);
    const failing = await run(flow, { given: null }, { ...components, a: fails() });
    expect([failing.result, failing.calls]).toEqual([boom, { a: 1 }]);
    expect((await run({ steps, output: { $coalesce: [ref("a"), null] } }, {}, components)).result).toEqual({
      outcome: "success",
      result: null,
    });
    expect((await run({ output: { $coalesce: [] } }, {})).result).toEqual({ outcome: "success", result: null });
  });

  it("chooses inside of choices", async () => {
    const { run } = await openFlows();
    const flow = {
      steps: ["a", "b", "c", "d", "e"].map((id) => step(id)),
      output: either({ $coalesce: [ref("a"), ref("b")] }, either(ref("c"), { deep: [ref("d")] }, ref("e")), ref("e")),
    };
    const components = { a: succeeds(null), b: succeeds(1), c: succeeds(true), d: succeeds("d"), e: succeeds("e") };
    const { result, calls } = await run(flow, null, components);
    expect(result).toEqual({ outcome: "success", result: { deep: ["d"] } });
    expect(calls).toEqual({ a: 1, b: 1, c: 1, d: 1 });
    const other = await run(flow, null, { ...components, b: succeeds(null) });
    expect([other.result, other.calls]).toEqual([
      { outcome: "success", result: "e" },
      { a: 1, b: 1, e: 1 },
    ]);
  });

  it("runs the step of a variable's default only when the variable is missing", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("asked")], output: { $variable: "name", default: ref("asked") } };
    const asked = succeeds("asked for");
    expect(await run(flow, null, { asked })).toMatchObject({ calls: { asked: 1 }, result: { result: "asked for" } });
    expect(await run(flow, null, { asked }, { variables: { name: "given" } })).toMatchObject({ calls: {}, result: { result: "given" } });
  });
});

describe("values", () => {
  it("of a step that gave null are null all the way down, and a field that is missing fails the step that reads it", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("a"), step("b", ref("a", "$.x.y"))], output: ref("b") };
    expect((await run(flow, null, { a: succeeds(null), b: (input) => ({ result: [input] }) })).result).toEqual({
      outcome: "success",
      result: [null],
    });
    const { result, calls } = await run(flow, null, { a: succeeds({ x: {} }), b: succeeds(1) });
    expect(result).toMatchObject({
      outcome: "failed",
      error: { code: "EXPRESSION_FAILURE", message: 'the output of step "a" has nothing at $.x.y' },
    });
    expect(calls).toEqual({ a: 1 });
  });

  it("fail in the output itself as well", async () => {
    const { run, found } = await openFlows();
    const { id, result } = await run({ output: { $input: "name" } }, {});
    const message = "the input of the flow has nothing at $.name";
    expect(result).toEqual({
      outcome: "failed",
      error: { code: "EXPRESSION_FAILURE", message, data: { stack: [{ error: message, attachments: [] }] } },
    });
    expect(await found(id)).toMatchObject({ state: "failed", error: message });
  });

  it("are used unchanged where they are literal", async () => {
    const { run } = await openFlows();
    const literal = { $step: "a", $from: { step: "b" }, deep: [{ $input: "x" }] };
    expect((await run({ output: { it: { $literal: literal }, plain: { a: [1, "$.b", null] } } }, null)).result).toEqual({
      outcome: "success",
      result: { it: literal, plain: { a: [1, "$.b", null] } },
    });
  });

  it("named __proto__ are fields like any other", async () => {
    const { run } = await openFlows();
    const flow = JSON.parse('{"steps":[],"output":{"__proto__":{"$input":"$"},"in":{"$input":"$.__proto__.a"}}}') as JsonObject;
    const input = JSON.parse('{"__proto__":{"a":1}}') as Json;
    const { result } = await run(flow, input);
    expect(JSON.stringify(result)).toBe('{"outcome":"success","result":{"__proto__":{"__proto__":{"a":1}},"in":1}}');
  });
});

describe("a failure", () => {
  it("reaches those that need the step without executing them, while independent steps still run", async () => {
    const { run } = await openFlows();
    const flow = {
      steps: [
        step("bad"),
        step("next", { from: ref("bad") }),
        step("last", ref("next")),
        step("other", null, { mustExecute: true }),
        step("after", ref("other"), { mustExecute: true }),
      ],
      output: [ref("last")],
    };
    const fine = succeeds(1);
    const { result, calls, steps } = await run(flow, null, { bad: fails(), next: fine, last: fine, other: fine, after: fine });
    expect(result).toEqual(boom);
    expect(calls).toEqual({ bad: 1, other: 1, after: 1 });
    expect(steps).toMatchObject({ bad: boom, next: boom, last: boom, other: { outcome: "success" } });
  });

  it("of a step that the output does not need does not fail the run", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("bad", null, { mustExecute: true }), step("a")], output: ref("a") };
    expect((await run(flow, null, { bad: fails(), a: succeeds(1) })).result).toEqual({ outcome: "success", result: 1 });
  });

  it("of any executed step fails a run that belongs to another, unless a default took its place", async () => {
    const { run } = await openFlows();
    const sub = { rootRunId: "root" };
    const flow = (onError: JsonObject) => ({ steps: [step("bad", null, { mustExecute: true, onError }), step("a")], output: ref("a") });
    const components = { bad: fails(), a: succeeds(1) };
    expect((await run(flow({ action: "fail" }), null, components, { sub })).result).toEqual(boom);
    expect((await run(flow({ action: "useDefault" }), null, components, { sub })).result).toEqual({ outcome: "success", result: 1 });
  });

  it("of an input alone fails a run that belongs to another only through its output", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("bad", { $input: "none" }, { mustExecute: true }), step("a")], output: ref("a") };
    expect((await run(flow, {}, { a: succeeds(1) }, { sub: {} })).result).toEqual({ outcome: "success", result: 1 });
  });

  it("of an input is not made up for by a default", async () => {
    const { run } = await openFlows();
    const flow = { steps: [step("a"), step("b", ref("a"), { onError: { action: "useDefault", defaultValue: 7 } })], output: ref("b") };
    expect((await run(flow, null, { a: fails(), b: succeeds(1) })).result).toEqual(boom);
  });

  it("to find a route fails the step, and a default takes its place", async () => {
    const { run } = await openFlows();
    const flow = (onError: JsonObject) => ({ steps: [{ id: "s", component: "/nowhere/x", onError }], output: ref("s") });
    const message = "error routing component: no route leads to '/nowhere/x'";
    expect((await run(flow({ action: "retry" }), null)).result).toMatchObject({ error: { code: "ORCHESTRATOR_ERROR", message } });
    expect((await run(flow({ action: "useDefault", defaultValue: 1 }), null)).result).toEqual({ outcome: "success", result: 1 });
  });
});

describe("retries", () => {
  const tries = async (code: Parameters<typeof fails>[1], onError: JsonObject) => {
    const { run } = await openFlows();
    const { calls } = await run({ steps: [step("s", null, { onError })], output: ref("s") }, null, { s: fails("no", code) });
    return calls.s;
  };

  it("are spent by kind of failure: transport errors always, failures of the component where the step requests it, the rest never", async () => {
    const retry = { action: "retry", maxRetries: 1 };
    for (const code of ["TIMEOUT", "UNREACHABLE"] as const) expect(await tries(code, { action: "fail" })).toBe(4);
    for (const code of ["COMPONENT_FAILED", "RESOURCE_UNAVAILABLE"] as const) {
      expect(await tries(code, { action: "fail" })).toBe(1);
      expect(await tries(code, retry)).toBe(2);
      expect(await tries(code, { action: "retry" })).toBe(4);
    }
    for (const code of [
      "INVALID_INPUT",
      "CANCELLED",
      "COMPONENT_NOT_FOUND",
      "EXPRESSION_FAILURE",
      "ORCHESTRATOR_ERROR",
      "WORKER_ERROR",
      "UNSPECIFIED",
    ] as const)
      expect(await tries(code, retry)).toBe(1);
  });

  it("wait 1, 1 and 2 seconds, and the two budgets do not touch each other", async () => {
    const world = await openFlows();
    const id = await world.start({ steps: [step("s", null, { onError: { action: "retry", maxRetries: 1 } })], output: ref("s") });
    const waits: number[] = [];
    for (const code of ["UNREACHABLE", "COMPONENT_FAILED", "TIMEOUT", "UNREACHABLE"] as const) {
      await world.work("s", { error: { code, message: "no" } });
      const since = world.clock.now();
      while ((await world.reader.task(`${id}.0`))?.dueAt !== world.clock.now()) await world.clock.advance(500);
      waits.push((world.clock.now() - since) / 1_000);
    }
    expect(waits).toEqual([1, 1, 1, 2]);
    expect(await world.reader.task(`${id}.0`)).toMatchObject({ attempt: 4, failures: 1, lost: 3 });
    await world.work("s", { result: "at last" });
    expect(await world.result(id)).toEqual({ outcome: "success", result: "at last" });
  });

  it("follow the silence of a worker, and a step whose budget is spent has timed out", async () => {
    const world = await openFlows();
    const id = await world.start({ steps: [step("s")], output: ref("s") });
    for (let attempt = 0; attempt < 4; attempt++) {
      expect((await world.claim("s"))?.attempt).toBe(attempt);
      await world.clock.advance(70_000);
    }
    expect(await world.result(id)).toMatchObject({ outcome: "failed", error: { code: "TIMEOUT" } });
  });
});

describe("steps in flight", () => {
  const wide = (width: number): JsonObject => ({
    steps: Array.from({ length: width }, (_, at) => ({ id: `s${at}`, component: "/mock/work", input: at })),
    output: Array.from({ length: width }, (_, at) => ref(`s${at}`)),
  });
  const claimAll = async (world: Awaited<ReturnType<typeof openFlows>>) => {
    const held = [];
    for (let task = await world.claim("work"); task !== undefined; task = await world.claim("work")) held.push(task);
    return held;
  };

  it("are ten of a run by default, and never more", async () => {
    for (const [maxConcurrency, expected] of [
      [undefined, 10],
      [1, 1],
      [3, 3],
      [100, 25],
    ] as const) {
      const world = await openFlows();
      const id = await world.start(wide(25), null, maxConcurrency === undefined ? {} : { maxConcurrency });
      expect((await claimAll(world)).length).toBe(expected);
      expect((await world.found(id)).state).toBe("running");
    }
  });

  it("of another run are not counted, and those of runs that share a key are", async () => {
    const world = await openFlows();
    await world.start(wide(12), null, { maxConcurrency: 2 });
    await world.start(wide(12), null, { maxConcurrency: 2 });
    expect((await claimAll(world)).length).toBe(4);
    const shared = { maxConcurrency: 2, sub: { limitKey: "stepflow:batch" } };
    await world.start(wide(1), null, shared);
    await world.start(wide(1), null, shared);
    await world.start(wide(1), null, shared);
    expect((await claimAll(world)).length).toBe(2);
  });

  it("have no limit to pass where a run cannot exceed it", async () => {
    const world = await openFlows();
    const chain = { steps: Array.from({ length: 30 }, (_, at) => step(`s${at}`, at === 0 ? null : ref(`s${at - 1}`))), output: ref("s29") };
    const id = await world.start(chain);
    expect((await world.reader.task(`${id}.0`))?.limits).toEqual([]);
    const fan = await world.start(wide(11));
    expect((await world.reader.task(`${fan}.0`))?.limits).toEqual([{ key: `stepflow:${fan}`, held: 10, pausesClaim: true }]);
  });
});

describe("trying a run again", () => {
  it("keeps what succeeded, executes what failed, and continues from there", async () => {
    const { run, runs, play, result } = await openFlows();
    const flow = {
      steps: [step("a"), step("b", ref("a")), step("c", either(ref("b"), ref("a"), null))],
      output: ref("c"),
    };
    const fine = succeeds(1);
    const { id } = await run(flow, null, { a: fine, b: fails(), c: fails("no") });
    expect(await result(id)).toMatchObject({ outcome: "failed" });
    await runs.retry(id);
    expect(await play(id, { a: fine, b: fine, c: (input) => ({ result: [input] }) })).toEqual({ b: 1, c: 1 });
    expect(await result(id)).toEqual({ outcome: "success", result: [1] });
  });
});
