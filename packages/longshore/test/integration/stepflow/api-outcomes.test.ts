// Flows over the API on a real server: the scenarios of the specification's section 9.1 that need only built-in components.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { either } from "../../support/flow-world.ts";
import { oneStep, startStepflow } from "../../support/stepflow-server.ts";

const literal = (value: object) => ({ $literal: value as never });
const nested = {
  name: "nested",
  steps: [{ id: "n", component: "/builtin/create_messages", input: { user_prompt: { $input: "q" } } }],
  output: { $step: "n" },
};

describe("flows through the API", () => {
  it("[S9-1] create_messages returns the messages of its input", async () => {
    const { run } = await startStepflow();
    const { results } = await run(oneStep("/builtin/create_messages", { user_prompt: { $input: "prompt" } }), [{ prompt: "Hello" }]);
    expect(results).toMatchObject([{ itemIndex: 0, status: 2, output: { messages: [{ role: "user", content: "Hello" }] } }]);
  });

  it("[S9-2] a flow without steps rearranges its input", async () => {
    const { run } = await startStepflow();
    const flow: JsonObject = {
      name: "shape",
      steps: [],
      output: { first: { $input: "$.items[0]" }, deep: { x: { $input: "$.a.b" } }, all: { $input: "$" } },
    };
    const input = { items: [7, 8], a: { b: null } };
    const { summary, results } = await run(flow, [input]);
    expect(results[0]).toMatchObject({ status: 2, output: { first: 7, deep: { x: null }, all: input } });
    expect(summary).toMatchObject({ status: 2, flowName: "shape", items: { total: 1, completed: 1, running: 0, failed: 0, cancelled: 0 } });
  });

  it.each([
    [
      "868591347a854ba1d0f4875b2dd44e1e8335052af03725a9819f89e0142318b0",
      { message: "Hello, blobs!", number: 42, nested: { array: [1, 2, 3], boolean: true } },
    ],
    [
      "aa05cc227a02bd66a2a91fde7500be122d28e87c45832d1aa9cb0b432eef7e04",
      { simple: "test", complex: { deeply: { nested: { value: "works" } } } },
    ],
  ])("[S9-3] put_blob then get_blob gives the id %s and the data back", async (id, data) => {
    const { run } = await startStepflow();
    const flow: JsonObject = {
      name: "blobs",
      steps: [
        { id: "put", component: "/builtin/put_blob", input: { data: { $input: "$" }, blob_type: "data" } },
        { id: "get", component: "/builtin/get_blob", input: { blob_id: { $step: "put", path: "blob_id" } } },
      ],
      output: { id: { $step: "put", path: "blob_id" }, data: { $step: "get", path: "data" } },
    };
    const { results } = await run(flow, [data]);
    expect(results[0].output).toEqual({ id, data });
  });

  it("[S9-4] map runs a flow for each item, and has the results in order", async () => {
    const { run } = await startStepflow();
    const items = [{ q: "1" }, { q: "2" }, { q: "3" }];
    const { results } = await run(oneStep("/builtin/map", { workflow: literal(nested), items }), [{}]);
    const messages = (content: string) => ({ outcome: "success", result: { messages: [{ role: "user", content }] } });
    expect(results[0].output).toEqual({ results: [messages("1"), messages("2"), messages("3")], successful: 3, failed: 0 });
  });

  it("[S9-4] map has its results in the order of its items, for any order of ends", async () => {
    const { submit, claim, complete, ended } = await startStepflow();
    const workflow = literal(oneStep("/hold", { $input: "$" }));
    const runId = await submit(oneStep("/builtin/map", { workflow, items: ["a", "b", "c"] }), [{}]);
    const held = [await claim("hold"), await claim("hold"), await claim("hold")];
    for (const task of held.toReversed()) await complete(task, { got: JSON.parse(task.input) });
    const results = ["a", "b", "c"].map((got) => ({ outcome: "success", result: { got } }));
    expect((await ended(runId)).steps[0].output).toEqual({ results, successful: 3, failed: 0 });
  });

  it("map reports which items failed, without failing itself", async () => {
    const { run } = await startStepflow();
    const { results } = await run(oneStep("/builtin/map", { workflow: literal(nested), items: [{ q: "1" }, {}], max_concurrency: 1 }), [
      {},
    ]);
    expect(results[0].output).toMatchObject({
      successful: 1,
      failed: 1,
      results: [{ outcome: "success" }, { outcome: "failed", error: { code: "EXPRESSION_FAILURE" } }],
    });
  });

  it("[S9-5] map over an empty list returns an empty list", async () => {
    const { run } = await startStepflow();
    const { results } = await run(oneStep("/builtin/map", { workflow: literal(nested), items: [] }), [{}]);
    expect(results[0].output).toEqual({ results: [], successful: 0, failed: 0 });
  });

  it("[S9-6] eval runs a stored flow and returns its result", async () => {
    const { run, store, call } = await startStepflow();
    const flowId = await store(nested);
    const { summary, results } = await run(oneStep("/builtin/eval", { flow_id: flowId, input: { q: "Q" } }), [{}]);
    const { result, run_id } = results[0].output;
    expect(result).toEqual({ outcome: "success", result: { messages: [{ role: "user", content: "Q" }] } });
    const inner = (await call("GET", `/runs/${run_id}`)).body.summary;
    expect(inner).toMatchObject({ flowId, flowName: "nested", status: 2, rootRunId: summary.runId, parentRunId: summary.runId });
  });

  it("iterate continues with { next }, ends with { result }, and fails after too many iterations", async () => {
    const { run } = await startStepflow();
    const countdown = {
      steps: [{ id: "n", component: "/builtin/noop", input: { $input: "rest" } }],
      output: either({ $input: "$.rest[0]" }, { next: { rest: { $input: "$.rest[1]" } } }, { result: "done" }),
    };
    const initial_input = { rest: [true, [true, [false, null]]] };
    const over = await run(oneStep("/builtin/iterate", { flow: literal(countdown), initial_input }), [{}]);
    expect(over.results[0].output).toEqual({ result: "done", iterations: 3, terminated: false });
    const cut = await run(oneStep("/builtin/iterate", { flow: literal(countdown), initial_input, max_iterations: 2 }), [{}]);
    expect(cut.results[0].output).toEqual({ result: { rest: [false, null] }, iterations: 2, terminated: true });
    const neither = await run(oneStep("/builtin/iterate", { flow: literal({ steps: [], output: 1 }), initial_input }), [{}]);
    expect(neither.results[0]).toMatchObject({
      status: 3,
      errorCode: 3,
      errorMessage: "Workflow result must contain either 'result' or 'next' field",
    });
  });

  it("a missing component, and one with a bad input, fail the run with their codes", async () => {
    const { run } = await startStepflow();
    expect((await run(oneStep("/builtin/nothing", {}), [{}])).results[0]).toMatchObject({ status: 3, errorCode: 6 });
    const bad = (await run(oneStep("/builtin/create_messages", {}), [{}])).results[0];
    expect(bad).toMatchObject({ status: 3, errorCode: 2, errorMessage: "/create_messages: user_prompt is missing, expected a text" });
    const missing = (await run(oneStep("/builtin/eval", { flow_id: "0".repeat(64), input: {} }), [{}])).results[0];
    expect(missing).toMatchObject({ status: 3, errorCode: 2, errorMessage: expect.stringContaining("not found") });
  });

  it("[S9-23] the result of a run can be read after a restart", async () => {
    const first = await startStepflow();
    const { summary, results } = await first.run(oneStep("/builtin/noop", { $input: "$" }), [{ a: 1 }]);
    await first.close();
    const { call } = await startStepflow({ data: first.data });
    expect((await call("GET", `/runs/${summary.runId}`)).body).toMatchObject({
      summary,
      steps: [{ stepId: "s1", stepIndex: 0, itemIndex: 0, status: 2, component: "/builtin/noop", output: { a: 1 } }],
    });
    expect((await call("GET", `/runs/${summary.runId}/items`)).body).toEqual({ results });
  });
});
