import { describe, expect, it, onTestFinished } from "vitest";
import { oneStep } from "../../../../../test/support/stepflow-server.ts";
import { type Caller, calledWorker, everyone } from "../../../../core/actions.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import { openEngine } from "../../../../server/engine.ts";
import { openStepflowApi } from "./api.ts";

async function setup(called: Caller = everyone) {
  const engine = await openEngine({ directory: null });
  const api = openStepflowApi({
    engine,
    access: { files: null, variables: new Set() },
    version: "0.0.0",
    called,
    holds: async () => false,
    servesBlobs: true,
    environment: {},
    components: () => ({ list: async () => ({ listed: [], failed: [] }) }),
    failed: () => {},
  });
  await api.start();
  onTestFinished(async () => {
    await api.close();
    await engine.close();
  });
  const { flows, runs } = api.services;
  const store = async (flow: JsonObject) => (await flows.store(JSON.stringify(flow), false)).flowId as string;
  const { signal } = new AbortController();
  /** A step that a worker holds. */
  const held = async () => {
    const flowId = await store(oneStep("/hold", {}));
    await runs.create({ flowId, inputs: [{}] }, { wait: false, gone: () => signal });
    const reach = { names: ["hold"], labels: [] };
    return (await engine.board.claim({ reach, holder: "ann", termMs: 60_000, waitMs: 60_000 }))[0]!;
  };
  return { calls: api.calls, workerRuns: api.workerRuns, store, held, signal };
}

describe("a worker over JSON-RPC", () => {
  it("stores a blob and gets it by the hash of its JSON", async () => {
    const { calls } = await setup();
    const id = await calls.putBlob({ b: 1, a: [2] }, "data");
    expect(await calls.getBlob(id)).toEqual({ data: { b: 1, a: [2] }, type: "data" });
    expect(await calls.getBlob(`sha256:${id}`)).toEqual({ data: { b: 1, a: [2] }, type: "data" });
    await expect(calls.getBlob("0".repeat(64))).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    await expect(calls.getBlob("short")).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
  });

  it("starts a run of a flow that it has stored as a blob, by the id of the blob", async () => {
    const { calls, held, signal } = await setup();
    const task = await held();
    const flowId = await calls.putBlob(oneStep("/builtin/noop", { $input: "$" }), "flow");
    for (const given of [flowId, `sha256:${flowId}`]) {
      const run = await calls.submitRun({ flowId: given, inputs: [{ a: 1 }], wait: true }, task.id, signal);
      expect(run).toMatchObject({ flowId, status: "completed" });
    }
  });

  it("starts runs that belong to the run of its step, at most one for each key of the step", async () => {
    const { calls, store, held, signal, workerRuns } = await setup();
    const task = await held();
    const flowId = await store(oneStep("/builtin/noop", { $input: "$" }));
    const submit = (from: string, subflowKey?: string) =>
      calls.submitRun({ flowId, inputs: [{ a: 1 }], wait: true, ...(subflowKey === undefined ? {} : { subflowKey }) }, from, signal);
    const first = (await submit(task.id, "k")) as JsonObject;
    const { runId } = await workerRuns.observability(task);
    expect(first).toMatchObject({
      flowId,
      flowName: "one",
      status: "completed",
      items: { total: 1, completed: 1, running: 0, failed: 0, cancelled: 0 },
      createdAt: expect.stringMatching(/Z$/),
      completedAt: expect.stringMatching(/Z$/),
      rootRunId: runId,
      parentRunId: runId,
      results: [{ itemIndex: 0, status: "completed", result: { outcome: "success", result: { a: 1 } } }],
    });
    expect(((await submit(task.id, "k")) as JsonObject).runId).toBe(first.runId);
    expect(((await submit(task.id, "l")) as JsonObject).runId).not.toBe(first.runId);
    // The same key of another step is another run, because workers use the same keys in each step.
    expect(((await submit((await held()).id, "k")) as JsonObject).runId).not.toBe(first.runId);
    expect(((await submit(task.id)) as JsonObject).runId).not.toBe(((await submit(task.id)) as JsonObject).runId);
  });

  it("may start runs of stored flows only, and read runs of its own family only, when the server requires tokens", async () => {
    const { calls, store, held, signal } = await setup(calledWorker);
    const [task, other] = [await held(), await held()];
    const flowId = await store(oneStep("/builtin/noop", { $input: "$" }));
    const run = await calls.submitRun({ flowId, inputs: [1], wait: true }, task.id, signal);
    expect(run).toMatchObject({ status: "completed" });
    const get = { runId: (run as JsonObject).runId as string, wait: false, includeResults: true, order: "by_index" } as const;
    expect(await calls.getRun(get, task.id, signal)).toMatchObject({ status: "completed" });
    const put = await calls.putBlob(oneStep("/builtin/noop", "what the worker wrote"), "flow");
    const denied = { code: "LONGSHORE_UNAUTHORIZED" };
    await expect(calls.submitRun({ flowId: put, inputs: [1], wait: true }, task.id, signal)).rejects.toMatchObject(denied);
    const overrides = { s: { value: { component: "/builtin/sleep" } } };
    await expect(calls.submitRun({ flowId, inputs: [1], wait: true, overrides }, task.id, signal)).rejects.toMatchObject(denied);
    await expect(calls.getRun(get, other.id, signal)).rejects.toMatchObject(denied);
  });

  it("gets the results of a run, with the code of each error", async () => {
    const { calls, store, held, signal } = await setup();
    const task = await held();
    const flowId = await store(oneStep("/builtin/create_messages", { user_prompt: { $input: "q" } }));
    const started = (await calls.submitRun({ flowId, inputs: [{}, { q: "x" }], wait: false }, task.id, signal)) as JsonObject;
    expect(started).not.toHaveProperty("results");
    const get = (includeResults: boolean) =>
      calls.getRun({ runId: started.runId as string, wait: true, includeResults, order: "by_index" }, task.id, signal);
    expect(await get(true)).toMatchObject({
      status: "failed",
      items: { total: 2, completed: 1, failed: 1 },
      results: [
        { itemIndex: 0, status: "failed", result: { outcome: "failed", error: { code: -32200, message: expect.any(String) } } },
        { itemIndex: 1, status: "completed", result: { outcome: "success" } },
      ],
    });
    expect(await get(false)).not.toHaveProperty("results");
    const nobody = { runId: "00000000-0000-7000-8000-000000000000", wait: false, includeResults: false, order: "by_index" } as const;
    await expect(calls.getRun(nobody, task.id, signal)).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    const bad = calls.submitRun({ flowId: "xyz", inputs: [1], wait: false }, task.id, signal);
    await expect(bad).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
  });
});
