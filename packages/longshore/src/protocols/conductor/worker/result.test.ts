// What a worker reports for each outcome of a handler, as a server receives it.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { json, updateV1 } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { type Context, currentContext } from "../../../core/context.ts";
import { TerminalError } from "../../../core/errors.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { type Task, type TaskOptions, task } from "../../../core/task.ts";
import type { TaskResult } from "../wire/shapes.ts";
import { conductorTask, inProgress, taskResult } from "./index.ts";

/** The result of one call of this handler. */
async function resultFor(
  handler: (input: never, ctx: Context) => unknown,
  polled: JsonObject = {},
  options: TaskOptions & { input?: unknown } = {},
): Promise<TaskResult & { readonly errors: readonly string[]; readonly nowMs: number }> {
  const greet = task("greet", handler as never, options as never) as Task;
  await using s = await setup({ tasks: [greet], before: (stub) => void stub.enqueue("greet", polled) });
  await until(() => s.stub.results.length === 1);
  const errors = s.notices.filter(({ level }) => level === "error").map(({ message }) => message);
  return { ...(s.stub.results[0] as TaskResult), errors, nowMs: s.clock.now() };
}

describe("a value", () => {
  it.each([
    ["an object", { a: 1 }, { a: 1 }],
    ["a text", "hi", { result: "hi" }],
    ["a number", 7, { result: 7 }],
    ["a list", [1, 2], { result: [1, 2] }],
    ["null", null, { result: null }],
    ["nothing", undefined, { result: null }],
  ])("[C-EXEC-07] that is %s completes the task", async (_name, value, outputData) => {
    expect(await resultFor(async () => value)).toMatchObject({ status: "COMPLETED", outputData });
  });

  it("[C-EXEC-01] carries the ids of task, workflow and worker", async () => {
    const result = await resultFor(() => ({ ok: true }), { taskId: "t7", workflowInstanceId: "w7" });
    expect(result).toMatchObject({ taskId: "t7", workflowInstanceId: "w7", workerId: "w1", status: "COMPLETED" });
  });

  it("[C-HTTP-05] of classes, dates and nested lists is written as JSON", async () => {
    class Order {
      readonly id = 5;
      readonly at = new Date("2024-05-06T07:08:09.010Z");
      readonly lines = [{ sku: "x", none: null }];
    }
    const { outputData } = await resultFor(() => new Order());
    expect(outputData).toEqual({ id: 5, at: "2024-05-06T07:08:09.010Z", lines: [{ sku: "x", none: null }] });
  });

  it("that JSON cannot hold fails the task permanently with this reason", async () => {
    const cycle: { self?: unknown } = {};
    cycle.self = cycle;
    const result = await resultFor(() => cycle);
    expect(result).toMatchObject({ status: "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion: expect.stringContaining("not JSON") });
  });
});

describe("input", () => {
  it("[C-EXEC-04, C-WIRE-03] is read by field name, and a missing field gets the schema's default or null", async () => {
    const input = z.object({ name: z.string(), times: z.number().default(2), note: z.string().nullable() });
    const handler = ({ name, times, note }: z.infer<typeof input>) => ({ name, times, note });
    const { outputData } = await resultFor(handler as never, { inputData: { name: "Ada", more: 1 } }, { input });
    expect(outputData).toEqual({ name: "Ada", times: 2, note: null });
  });

  it("that the server stores elsewhere is fetched from there; when it is missing, the task may be retried", async () => {
    const seen: unknown[] = [];
    const greet = task("greet", (input: unknown) => void seen.push(input));
    const storage = /^GET \/api\/tasks\/externalstoragelocation$/;
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.misbehave(storage, json(200, { uri: `${stub.url}/elsewhere/in.json?key=1`, path: "in.json" }));
        stub.misbehave(/^GET \/elsewhere\/in\.json$/, json(200, { large: true }), 1);
        stub.enqueue("greet", { externalInputPayloadStoragePath: "in.json" });
        stub.enqueue("greet", { externalInputPayloadStoragePath: "in.json" });
      },
    });
    await until(() => s.stub.results.length === 2);
    expect(seen).toEqual([{ large: true }]);
    expect(s.stub.seen(storage)[0]?.query).toBe("path=in.json&operation=READ&payloadType=TASK_INPUT");
    expect(s.stub.results[1]).toMatchObject({ status: "FAILED", reasonForIncompletion: expect.stringContaining("kept elsewhere") });
  });

  it("that does not fit its schema fails the task permanently", async () => {
    const result = await resultFor((() => 1) as never, { inputData: { name: 5 } }, { input: z.object({ name: z.string() }) });
    expect(result.status).toBe("FAILED_WITH_TERMINAL_ERROR");
    expect(result.reasonForIncompletion).toContain("name");
  });
});

describe("a failure", () => {
  it("[C-EXEC-11, C-EXEC-13] is FAILED with the message as reason, the stack as a log in milliseconds, and the handler's own logs", async () => {
    const result = await resultFor((_input: never, ctx: Context) => {
      ctx.log("almost there");
      throw new RangeError("out of stock");
    });
    expect(result).toMatchObject({ status: "FAILED", reasonForIncompletion: "out of stock", outputData: {} });
    expect(result.logs).toHaveLength(2);
    expect(result.logs?.[0]).toEqual({ log: "almost there", taskId: "task-1", createdTime: result.nowMs });
    expect(result.logs?.[1]?.log).toMatch(/^RangeError: out of stock\n\s+at /);
    expect(result.logs?.[1]?.createdTime).toBe(result.nowMs);
  });

  it("[C-EXEC-10, C-ERR-03] that is terminal is FAILED_WITH_TERMINAL_ERROR, and reported as an error", async () => {
    const result = await resultFor(() => {
      throw new TerminalError("no such customer");
    });
    expect(result).toMatchObject({ status: "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion: "no such customer" });
    expect(result.logs?.[0]?.log).toContain("no such customer\n");
    expect(result.errors[0]).toContain("Task failed with terminal error (no retry): no such customer");
  });

  it("is recognised as terminal when another copy of this package made the error", async () => {
    const result = await resultFor(() => {
      throw Object.assign(new Error("never"), { [Symbol.for("longshore.terminal")]: true });
    });
    expect(result.status).toBe("FAILED_WITH_TERMINAL_ERROR");
  });

  it("[C-EXEC-14] without a message has its class name as the reason", async () => {
    const result = await resultFor(() => {
      throw new TypeError();
    });
    expect(result.reasonForIncompletion).toBe("TypeError");
  });
});

describe("later", () => {
  it("[C-TIP-01, C-TIP-02, C-EXEC-06] is sent as IN_PROGRESS with the time and the output, after 60 s by default", async () => {
    expect(await resultFor(() => inProgress({ page: 2 }))).toMatchObject({
      status: "IN_PROGRESS",
      callbackAfterSeconds: 60,
      outputData: { page: 2 },
    });
    expect(await resultFor(() => inProgress({ page: 3 }, 5))).toMatchObject({ callbackAfterSeconds: 5 });
  });

  it("by ctx.defer is the same", async () => {
    const result = await resultFor((_input: never, ctx: Context) => ctx.defer("1500ms", { page: 4 }));
    expect(result).toMatchObject({ status: "IN_PROGRESS", callbackAfterSeconds: 2, outputData: { page: 4 } });
  });

  it("[C-TIP-03] passes the round and the kept data to the next call", async () => {
    const seen: unknown[] = [];
    await resultFor((_input: never, ctx: Context) => void seen.push(conductorTask().pollCount, ctx.deferrals, ctx.deferred, ctx.attempt), {
      pollCount: 2,
      outputData: { page: 2 },
      retryCount: 1,
    });
    expect(seen).toEqual([3, 2, { page: 2 }, 2]);
  });
});

describe("a result object", () => {
  it("[C-EXEC-05, C-WIRE-04] of each status is accepted unchanged, with the ids of the task", async () => {
    const failed = await resultFor(() =>
      taskResult({ status: "FAILED", outputData: { tried: 3 }, reasonForIncompletion: "no stock", logs: [{ log: "looked" }] }),
    );
    expect(failed).toMatchObject({
      taskId: "task-1",
      workflowInstanceId: "wf-1",
      status: "FAILED",
      outputData: { tried: 3 },
      reasonForIncompletion: "no stock",
      logs: [{ log: "looked", taskId: "task-1", createdTime: failed.nowMs }],
    });
    expect(await resultFor(() => taskResult({ status: "COMPLETED", outputData: { a: 1 } }))).toMatchObject({
      status: "COMPLETED",
      outputData: { a: 1 },
    });
    expect(await resultFor(() => taskResult({ status: "FAILED_WITH_TERMINAL_ERROR" }))).toMatchObject({
      status: "FAILED_WITH_TERMINAL_ERROR",
    });
    expect(await resultFor(() => taskResult({ status: "IN_PROGRESS", callbackAfterSeconds: 9 }))).toMatchObject({
      status: "IN_PROGRESS",
      callbackAfterSeconds: 9,
    });
  });

  it("with an invalid status fails the task and names it", async () => {
    const result = await resultFor(() => taskResult({ status: "DONE" as never }));
    expect(result.reasonForIncompletion).toContain('The status of a task result is "DONE", expected one of IN_PROGRESS');
  });
});

describe("the context", () => {
  it("[C-CTX-01, C-CTX-03, C-EXEC-02] gives the task, its workflow and its counts to all code that the handler calls, and to no other code", async () => {
    const deep = async () => {
      await Promise.resolve();
      const { taskId, workflowInstanceId, pollCount, retryCount, referenceTaskName, inputData, task: polled } = conductorTask();
      return { taskId, workflowInstanceId, pollCount, retryCount, referenceTaskName, inputData, priority: polled.workflowPriority };
    };
    const { outputData } = await resultFor(deep, { inputData: { a: 1 }, retryCount: 2, workflowPriority: 5 });
    expect(outputData).toEqual({
      taskId: "task-1",
      workflowInstanceId: "wf-1",
      pollCount: 1,
      retryCount: 2,
      referenceTaskName: "greet_ref",
      inputData: { a: 1 },
      priority: 5,
    });
    expect(() => conductorTask()).toThrow(/outside a running handler/);
    expect(() => currentContext()).toThrow(/outside a running handler/);
  });

  it("[C-CTX-02, C-MRG-01, C-EXEC-08] adds its logs after those of the result", async () => {
    const result = await resultFor(() => {
      conductorTask().addLog("from the context");
      return taskResult({ status: "COMPLETED", logs: [{ log: "from the result" }] });
    });
    expect(result.logs?.map(({ log }) => log)).toEqual(["from the result", "from the context"]);
  });

  it("[C-MRG-02] sets the callback time, also when the result sets another", async () => {
    const deferred = await resultFor(() => {
      conductorTask().setCallbackAfter(7);
      return inProgress({}, 30);
    });
    expect(deferred.callbackAfterSeconds).toBe(7);
    const returned = await resultFor(() => {
      conductorTask().setCallbackAfter(8);
      return taskResult({ status: "COMPLETED", callbackAfterSeconds: 30 });
    });
    expect(returned.callbackAfterSeconds).toBe(8);
    expect((await resultFor(() => taskResult({ status: "COMPLETED", callbackAfterSeconds: 30 }))).callbackAfterSeconds).toBe(30);
  });

  it("[C-MRG-03] fills in output that the result does not set, also for a failure", async () => {
    const handler = (end: () => unknown) => () => {
      conductorTask().setOutput({ a: "context", b: "context" });
      return end();
    };
    expect((await resultFor(handler(() => ({ a: "result" })))).outputData).toEqual({ a: "result", b: "context" });
    const failed = await resultFor(
      handler(() => {
        throw new Error("late");
      }),
    );
    expect(failed).toMatchObject({ status: "FAILED", outputData: { a: "context", b: "context" } });
  });

  it("[C-EXEC-02] has nothing that an earlier task of the same slot has set", async () => {
    let calls = 0;
    const greet = task("greet", () => {
      if (++calls === 1) conductorTask().setOutput({ left: true });
      return { calls };
    });
    await using s = await setup({ tasks: [greet], before: (stub) => void [stub.enqueue("greet"), stub.enqueue("greet")] });
    await until(() => s.stub.results.length === 2);
    expect(s.stub.results.map(({ outputData }) => outputData)).toEqual([{ left: true, calls: 1 }, { calls: 2 }]);
  });
});

describe("progress and long logs", () => {
  it("become log lines, cut to the newest million characters", async () => {
    const result = await resultFor((_input: never, ctx: Context) => {
      ctx.progress({ done: 0.5 });
      for (let n = 0; n < 12; n++) ctx.log(`${n}`.repeat(50_000));
      ctx.log("last");
      return {};
    });
    const texts = (result.logs ?? []).map(({ log }) => log);
    expect(texts.at(-1)).toBe("last");
    expect(texts.join("").length).toBeLessThanOrEqual(1_000_000);
  });
});

it("an IN_PROGRESS result is sent by v1", async () => {
  await using s = await setup({ tasks: [task("greet", () => inProgress())], before: (stub) => void stub.enqueue("greet") });
  await until(() => s.stub.results.length === 1);
  expect(s.stub.seen(updateV1)).toHaveLength(1);
});
