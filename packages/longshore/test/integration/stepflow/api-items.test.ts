// Runs with several items: each is independent, no more run at the same time than the run allows, and a restart starts nothing twice.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import type { TaskRow } from "../../../src/engine/board/task.ts";
import { oneStep, type StepflowServer, startStepflow } from "../../support/stepflow-server.ts";

const hold = oneStep("/hold", { $input: "$" });
const given = (task: TaskRow) => JSON.parse(task.input);
const statistics = (total: number, completed: number, failed = 0, cancelled = 0) => ({
  total,
  completed,
  failed,
  cancelled,
  running: total - completed - failed - cancelled,
});

/** Ends are distinguished by their milliseconds. */
async function nextMillisecond(): Promise<void> {
  for (const now = Date.now(); Date.now() === now; ) await new Promise((resolve) => setImmediate(resolve));
}

async function completeAll({ claim, complete }: StepflowServer, count: number): Promise<void> {
  for (let done = 0; done < count; done++) {
    const task = await claim("hold");
    await complete(task, { got: given(task) });
  }
}

describe("a run with items", () => {
  it("[S9-56] has their results in their order, for any order of ends", async () => {
    const { submit, claim, complete, ended, call } = await startStepflow();
    const runId = await submit(hold, ["a", "b", "c"]);
    const tasks = [await claim("hold"), await claim("hold"), await claim("hold")];
    for (const task of tasks.toReversed()) {
      await complete(task, { got: given(task) });
      await nextMillisecond();
    }
    expect((await ended(runId)).summary).toMatchObject({ status: 2, flowName: "one", items: statistics(3, 3) });
    const { results } = (await call("GET", `/runs/${runId}/items`)).body;
    expect(results).toMatchObject([
      { itemIndex: 0, status: 2, output: { got: "a" } },
      { itemIndex: 1, status: 2, output: { got: "b" } },
      { itemIndex: 2, status: 2, output: { got: "c" } },
    ]);
    const byCompletion = (await call("GET", `/runs/${runId}/items?resultOrder=RESULT_ORDER_BY_COMPLETION`)).body.results;
    expect(byCompletion.map(({ itemIndex }: { itemIndex: number }) => itemIndex)).toEqual([2, 1, 0]);
    expect((await call("GET", `/runs/${runId}/items?resultOrder=2`)).body.results).toEqual(byCompletion);
  });

  it("[S9-56] continues when one of them fails, and ends as failed", async () => {
    const { run, call } = await startStepflow();
    const flow = oneStep("/builtin/create_messages", { user_prompt: { $input: "q" } });
    const { summary, results } = await run(flow, [{ q: "1" }, {}, { q: "3" }]);
    expect(summary).toMatchObject({ status: 3, items: statistics(3, 2, 1) });
    expect(results).toMatchObject([
      { itemIndex: 0, status: 2 },
      { itemIndex: 1, status: 3, errorCode: 8, errorMessage: expect.stringContaining("q") },
      { itemIndex: 2, status: 2 },
    ]);
    const { steps } = (await call("GET", `/runs/${summary.runId}/steps`)).body;
    expect(steps.map((step: JsonObject) => [step.itemIndex, step.stepId, step.status])).toEqual([
      [0, "s1", 2],
      [1, "s1", 3],
      [2, "s1", 2],
    ]);
    expect((await call("GET", `/runs/${summary.runId}/steps?itemIndex=1`)).body.steps).toHaveLength(1);
    expect((await call("GET", `/runs/${summary.runId}/steps/s1?itemIndex=2`)).body.step).toMatchObject({ itemIndex: 2, status: 2 });
    expect((await call("GET", "/runs")).body.runs).toHaveLength(1);
  });

  it("[S9-56] has no more steps at the same time than it allows", async () => {
    const server = await startStepflow();
    const { submit, claim, complete, none, ended, call } = server;
    const wide: JsonObject = {
      steps: [
        { id: "l", component: "/hold", input: "left" },
        { id: "r", component: "/hold", input: "right" },
      ],
      output: [{ $step: "l" }, { $step: "r" }],
    };
    const runId = await submit(wide, [1, 2, 3], { maxConcurrency: 2 });
    for (let pair = 0; pair < 3; pair++) {
      const tasks = [await claim("hold"), await claim("hold")];
      expect(await none("hold")).toBe(true);
      for (const task of tasks) await complete(task, pair);
    }
    expect((await ended(runId)).summary.items).toEqual(statistics(3, 3));
    const narrow = await submit(hold, [1, 2, 3, 4], { maxConcurrency: 1 });
    const first = await claim("hold");
    expect(await none("hold")).toBe(true);
    expect((await call("GET", `/runs/${narrow}`)).body.summary).toMatchObject({ status: 1, items: statistics(4, 0) });
    await complete(first, 1);
    await completeAll(server, 3);
    expect((await ended(narrow)).summary.status).toBe(2);
  });

  it("[S9-56] may have no items", async () => {
    const { run, call } = await startStepflow();
    const { summary, results } = await run(hold, []);
    expect(summary).toMatchObject({ status: 2, items: statistics(0, 0) });
    expect(results).toEqual([]);
    expect((await call("GET", `/runs/${summary.runId}/items`)).body).toEqual({ results: [] });
  });

  it("is cancelled with those that have begun, and the others never begin", async () => {
    const { submit, claim, call, ended, none } = await startStepflow();
    const runId = await submit(hold, [1, 2, 3, 4], { maxConcurrency: 2 });
    await Promise.all([claim("hold"), claim("hold")]);
    await call("POST", `/runs/${runId}/cancel`);
    expect((await ended(runId)).summary).toMatchObject({ status: 4, items: statistics(4, 0, 0, 4) });
    const { results } = (await call("GET", `/runs/${runId}/items`)).body;
    expect(results.map(({ status }: { status: number }) => status)).toEqual([4, 4, 4, 4]);
    expect(await none("hold")).toBe(true);
    expect((await call("DELETE", `/runs/${runId}`)).status).toBe(200);
    expect((await call("GET", `/runs/${runId}`)).status).toBe(404);
  });

  it("retries only the items that did not succeed, once", async () => {
    const { submit, claim, complete, call, ended, engine } = await startStepflow();
    const runId = await submit(hold, ["a", "b"]);
    const tasks = [await claim("hold"), await claim("hold")];
    const bad = tasks.find((task) => given(task) === "b") as TaskRow;
    await complete(tasks.find((task) => given(task) === "a") as TaskRow, 1);
    await engine.board.fail({ taskId: bad.id, grant: bad.grant }, { error: "boom", retryable: false });
    expect((await ended(runId)).summary).toMatchObject({ status: 3, items: statistics(2, 1, 1) });
    await call("POST", `/runs/${runId}/retry`);
    const again = await claim("hold");
    expect(given(again)).toBe("b");
    await complete(again, 2);
    expect((await ended(runId)).summary).toMatchObject({ status: 2, items: statistics(2, 2) });
  });
});

describe("a restart in the middle", () => {
  it("of a run with items starts none of them twice", async () => {
    const first = await startStepflow();
    const runId = await first.submit(hold, [0, 1, 2, 3, 4], { maxConcurrency: 2 });
    await completeAll(first, 2);
    const third = await first.claim("hold");
    await first.crash();
    const second = await startStepflow({ data: first.data });
    // The worker still holds its item.
    await second.complete(third, { got: given(third) });
    await completeAll(second, 2);
    const { summary } = await second.ended(runId);
    expect(summary).toMatchObject({ status: 2, items: statistics(5, 5) });
    const { results } = (await second.call("GET", `/runs/${runId}/items`)).body;
    expect(results.map(({ output }: JsonObject) => output)).toEqual([0, 1, 2, 3, 4].map((got) => ({ got })));
    expect(await second.none("hold")).toBe(true);
  });

  it.each([
    [
      "map",
      (flow: JsonObject) => ({ workflow: { $literal: flow }, items: ["a", "b", "c"] }),
      { results: expect.anything(), successful: 3, failed: 0 },
    ],
    [
      "eval",
      (_flow: JsonObject, flowId: string) => ({ flow_id: flowId, input: "a" }),
      { result: { outcome: "success", result: { got: "a" } }, run_id: expect.any(String) },
    ],
  ] as const)("of %s finds what it has started, and goes on", async (name, input, output) => {
    const first = await startStepflow();
    const inner = { steps: [{ id: "h", component: "/hold", input: { $input: "$" } }], output: { $step: "h" } };
    const flowId = await first.store(inner);
    const runId = await first.submit(oneStep(`/builtin/${name}`, input(inner, flowId) as JsonObject), [{}]);
    const begun = await first.claim("hold");
    await first.crash();
    const second = await startStepflow({ data: first.data });
    await second.complete(begun, { got: given(begun) });
    if (name === "map") await completeAll(second, 2);
    expect((await second.ended(runId)).steps).toMatchObject([{ stepId: "s1", status: 2, output }]);
    expect(await second.none("hold")).toBe(true);
    const family = (await second.call("GET", `/runs?rootRunId=${runId}`)).body.runs;
    expect(family).toMatchObject([{ status: 2, parentRunId: runId, rootRunId: runId }, { runId }]);
  });

  it("of iterate continues with the current iteration", async () => {
    const first = await startStepflow();
    const flow = { steps: [{ id: "h", component: "/hold", input: { $input: "$" } }], output: { $step: "h" } };
    const runId = await first.submit(oneStep("/builtin/iterate", { flow: { $literal: flow }, initial_input: 0 }), [{}]);
    await first.complete(await first.claim("hold"), { next: 1 });
    const begun = await first.claim("hold");
    expect(given(begun)).toBe(1);
    await first.crash();
    const second = await startStepflow({ data: first.data });
    await second.complete(begun, { next: 2 });
    const third = await second.claim("hold");
    expect(given(third)).toBe(2);
    await second.complete(third, { result: "over" });
    expect((await second.ended(runId)).steps[0].output).toEqual({ result: "over", iterations: 3, terminated: false });
    expect(await second.none("hold")).toBe(true);
  });

  it("of a run during its cancellation ends the runs that it had started", async () => {
    const first = await startStepflow();
    const runId = await first.submit(hold, [1, 2], {});
    await Promise.all([first.claim("hold"), first.claim("hold")]);
    await first.close();
    const second = await startStepflow({ data: first.data });
    await second.call("POST", `/runs/${runId}/cancel`);
    expect((await second.ended(runId)).summary).toMatchObject({ status: 4, items: statistics(2, 0, 0, 2) });
  });
});
