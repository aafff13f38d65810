import { describe, expect, it } from "vitest";
import type { Json } from "../../../core/json/json.ts";
import { task } from "../../../core/task.ts";
import { TestClock } from "../../../testing/clock.ts";
import { Loopback } from "../../../testing/loopback.ts";
import { work } from "../../../work.ts";
import { Answers, type Callbacks, type SubmitRun } from "./callbacks.ts";
import { nativeOf, type RunStatus, type StepflowTask, stepflowTask } from "./task-context.ts";

const items = { total: 1, completed: 0, running: 1, failed: 0, cancelled: 0 };
const running: RunStatus = { runId: "r2", flowId: "f", status: "running", items, results: [] };
const completed: RunStatus = { ...running, status: "completed", results: [{ index: 0, status: "completed", output: { x: 1 } }] };

/** Runs `handler` as a task. `calls` has the responses to its requests. */
async function setup(handler: (stepflow: StepflowTask) => Promise<unknown>, calls: Partial<Callbacks>) {
  const clock = new TestClock();
  const loop = new Loopback();
  const asker = task("asker", (_input: unknown, ctx) => handler(stepflowTask(ctx)));
  const worker = await work({ tasks: [asker], on: loop, signals: false, logger: false, clock });
  const native = nativeOf({ component: "/asker", pathParams: { lang: "de" }, runId: "r1", rootRunId: "r0", stepId: "s" });
  const run = async () => {
    let answers: Answers | undefined;
    const ask = (name: string, value: Json, signal: AbortSignal) => {
      answers ??= new Answers(calls as Callbacks, { clock, signal, idempotencyKey: "t1" });
      return answers.answer(name, value);
    };
    return loop.run("asker", {}, { native, ask });
  };
  return { clock, run, native, [Symbol.asyncDispose]: () => worker.stop({ force: true }) };
}

describe("a handler's requests to a Stepflow orchestrator", () => {
  it("give it the ids of its run and step without a call", async () => {
    await using s = await setup(async ({ component, pathParams, runId, attempt }) => ({ component, pathParams, runId, attempt }), {});
    const output = { component: "/asker", pathParams: { lang: "de" }, runId: "r1", attempt: 1 };
    expect(await s.run()).toEqual({ kind: "done", output });
  });

  it("store and read blobs of JSON", async () => {
    const kept = new Map<string, Json>();
    await using s = await setup(async (stepflow) => stepflow.getBlob(await stepflow.putBlob({ a: [1] })), {
      putJson: async (data, type) => {
        kept.set(type, data);
        return type;
      },
      getJson: async (id) => kept.get(id) as Json,
    });
    expect(await s.run()).toEqual({ kind: "done", output: { a: [1] } });
  });

  it("start a run of a flow, which is stored first, with keys that a repeated attempt makes again", async () => {
    const submitted: SubmitRun[] = [];
    const calls: Partial<Callbacks> = {
      putJson: async (data, type) => `${type}:${JSON.stringify(data)}`,
      submitRun: async (request) => {
        submitted.push(request);
        return running;
      },
    };
    const handler = async (stepflow: StepflowTask) => {
      await stepflow.submitRun({ flow: { steps: [] }, input: [1, 2], maxConcurrency: 3, variables: { v: 1 } });
      await stepflow.submitRun({ flowId: "f", input: [3], overrides: { steps: {} }, wait: true, timeoutSecs: 5 });
      await stepflow.submitRun({ flowId: "f", input: [4], key: "mine" });
    };
    await using s = await setup(handler, calls);
    await s.run();
    const [first, second] = submitted.map(({ key }) => key);
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(second).not.toBe(first);
    expect(submitted).toEqual([
      { flowId: 'flow:{"steps":[]}', input: [1, 2], maxConcurrency: 3, variables: { v: 1 }, key: first },
      { flowId: "f", input: [3], overrides: { steps: {} }, wait: true, timeoutSecs: 5, key: second },
      { flowId: "f", input: [4], key: "mine" },
    ]);
    await s.run();
    expect(submitted.slice(3)).toEqual(submitted.slice(0, 3));
  });

  it("return the output of a run, after any number of calls to the orchestrator", async () => {
    const asked: unknown[] = [];
    const states: RunStatus[] = [running, { ...completed, results: [] }, completed];
    await using s = await setup((stepflow) => stepflow.evaluate({ flowId: "f", input: { n: 1 } }), {
      submitRun: async ({ input, wait }) => {
        asked.push([input, wait]);
        return running;
      },
      getRun: async (runId, options) => {
        asked.push([runId, options]);
        return states.shift() as RunStatus;
      },
    });
    const outcome = s.run();
    await s.clock.armed(1_000);
    // Both responses came at once although the run was open, so there is a pause after each.
    await s.clock.advance(2_000);
    expect(await outcome).toEqual({ kind: "done", output: { x: 1 } });
    const waiting = ["r2", { wait: true, timeoutSecs: 50, results: true }];
    expect(asked).toEqual([[[{ n: 1 }], true], waiting, waiting, ["r2", { results: true }]]);
  });

  it("fail with the reason when the run fails", async () => {
    const failed: RunStatus = {
      ...running,
      status: "failed",
      results: [{ index: 0, status: "failed", error: { code: 3, message: "boom" } }],
    };
    await using s = await setup((stepflow) => stepflow.evaluate({ flowId: "f", input: 1 }), { submitRun: async () => failed });
    const error = { code: "LONGSHORE_TASK_FAILED", message: "Run r2 of flow f failed: boom" };
    expect(await s.run()).toMatchObject({ kind: "failed", retryable: true, error });
  });

  it.each([
    ["evaluate", {}, "flowId is undefined, expected a text."],
    ["submitRun", { flowId: "f", input: 1 }, "input is 1, expected a list: the run has one item for each element."],
    ["getRun", { runId: 7 }, "runId is 7, expected a text."],
    ["weather", {}, 'A Stepflow orchestrator has no call "weather"'],
    ["toString", {}, 'A Stepflow orchestrator has no call "toString"'],
  ])("is refused when it is wrong: %s %j", async (name, value, message) => {
    const by = { clock: new TestClock(), signal: new AbortController().signal, idempotencyKey: "t1" };
    await expect(new Answers({} as Callbacks, by).answer(name, value)).rejects.toThrow(message);
  });

  it("are refused for a task of another source", () => {
    expect(() => stepflowTask({ native: { polls: 1 } } as never)).toThrow(/did not come from a Stepflow orchestrator/);
  });
});
