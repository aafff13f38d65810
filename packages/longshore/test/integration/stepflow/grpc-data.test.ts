// What a handler may fetch, store and start besides its own input and output: blobs, references to them, runs of other flows.

import { describe, expect, it } from "vitest";
import type { Context } from "../../../src/core/context.ts";
import type { Json } from "../../../src/core/json/json.ts";
import { type Task, task } from "../../../src/core/task.ts";
import { GrpcCode, GrpcError } from "../../../src/net/grpc/status.ts";
import { ExecutionStatus, type OrchestratorSubmitRunRequest, TaskErrorCode } from "../../../src/protocols/stepflow/wire/messages.ts";
import { stepflowGrpc } from "../../../src/protocols/stepflow/worker/grpc/worker.ts";
import { type StepflowTask, stepflowTask } from "../../../src/protocols/stepflow/worker/task-context.ts";
import { StepflowOrchestrator } from "../../support/stepflow-orchestrator.ts";
import { startWorker } from "../../support/stepflow-worker.ts";
import { until } from "../../support/until.ts";

async function setup(tasks: readonly Task[], options: Parameters<typeof stepflowGrpc>[1] = {}) {
  const orchestrator = await StepflowOrchestrator.start();
  const worker = await startWorker(tasks, stepflowGrpc(orchestrator.url, { env: {}, ...options }));
  const run = async (input: Json = null) => {
    await orchestrator.send(orchestrator.task("t1", { componentId: "it", input }));
    return orchestrator.result("t1");
  };
  return { orchestrator, run, ...worker };
}

const it_ = (handler: (input: Json, stepflow: StepflowTask, ctx: Context) => unknown) =>
  task("it", (input: Json, ctx) => handler(input, stepflowTask(ctx), ctx));

const id = (n: number) => String(n).padStart(64, "0");

describe("blobs", () => {
  it("are bytes in ctx.blobs and JSON in stepflowTask(), and JSON can also be read as bytes", async () => {
    const s = await setup([
      it_(async (_input, stepflow, ctx) => {
        const bytes = await ctx.blobs.put(new Uint8Array([1, 2, 255]));
        const text = await ctx.blobs.put("text");
        expect(await stepflow.getBlob(text)).toBe("text");
        const json = await stepflow.putBlob({ a: [1] });
        return [
          [...(await ctx.blobs.get(bytes))],
          Buffer.from(await ctx.blobs.get(text)).toString(),
          await stepflow.getBlob(`sha256:${json}`),
          Buffer.from(await ctx.blobs.get(json)).toString(),
        ];
      }),
    ]);
    expect((await s.run()).response?.output).toEqual([[1, 2, 255], "text", { a: [1] }, '{"a":[1]}']);
    expect([...s.orchestrator.blobs.values()].map(({ type }) => type)).toEqual(["binary", "data", "data"]);
  });

  it("report when they do not exist, and an unavailable blob store causes a transient error", async () => {
    const codes: unknown[] = [];
    const s = await setup([
      it_(async (_input, stepflow, ctx) => {
        const bytes = await ctx.blobs.put(new Uint8Array([1]));
        for (const ask of [() => ctx.blobs.get(id(9)), () => stepflow.getBlob(bytes)]) {
          await ask().catch((error: { code: string; message: string }) => codes.push([error.code, error.message]));
        }
        return stepflow.getBlob(id(8));
      }),
    ]);
    expect((await s.run()).error?.code).toBe(TaskErrorCode.COMPONENT_FAILED);
    expect(codes).toEqual([
      ["LONGSHORE_NOT_FOUND", expect.stringMatching(/^GetBlob at .* failed with NOT_FOUND: blob '0+9' not found$/)],
      ["LONGSHORE_BAD_INPUT", `Blob ${id(0)} is bytes, expected JSON; ctx.blobs.get() reads bytes.`],
    ]);
  });

  it("[S-QUEUE-17] are stored at STEPFLOW_BLOB_URL", async () => {
    const store = await StepflowOrchestrator.start();
    const s = await setup([it_((_input, stepflow) => stepflow.putBlob(1))], { env: { STEPFLOW_BLOB_URL: store.url } });
    expect((await s.run()).response?.output).toBe(id(0));
    expect(store.blobs.size).toBe(1);
    expect(s.orchestrator.blobs.size).toBe(0);
  });
});

describe("references to blobs", () => {
  const outputs = { large: "x".repeat(20), deep: { inside: "y".repeat(20) }, small: "x", exact: "x".repeat(8) };

  it("[S9-62] in an input are replaced before the handler sees it", async () => {
    const s = await setup([it_((input) => input)]);
    s.orchestrator.blobs.set(id(1), { json: { deep: { $blob: id(2) } }, type: "data" });
    s.orchestrator.blobs.set(id(2), { json: [1, 2], type: "data" });
    expect((await s.run({ a: { $blob: id(1) }, b: 1 })).response?.output).toEqual({ a: { deep: [1, 2] }, b: 1 });
  });

  it("[S9-62] to a missing blob fail the task permanently", async () => {
    const s = await setup([it_((input) => input)]);
    const { error } = await s.run({ a: { $blob: id(7) } });
    expect(error).toMatchObject({ code: TaskErrorCode.INVALID_INPUT, message: `The input refers to blob ${id(7)}, which does not exist.` });
  });

  it("[S9-62] replace large top-level fields of an output when a threshold is set, but not deeper ones", async () => {
    const s = await setup([it_(() => outputs)], { env: { STEPFLOW_BLOB_THRESHOLD_BYTES: "10" } });
    const output = (await s.run()).response?.output as { large: { $blob: string }; deep: { $blob: string } };
    const blobType = "data";
    expect(output).toEqual({
      large: { $blob: expect.any(String), blobType, size: 22 },
      deep: { $blob: expect.any(String), blobType, size: 33 },
      small: "x",
      exact: "x".repeat(8),
    });
    const kept = (reference: { $blob: string }) => s.orchestrator.blobs.get(reference.$blob);
    expect([kept(output.large), kept(output.deep)]).toEqual([
      { json: outputs.large, type: "data" },
      { json: outputs.deep, type: "data" },
    ]);
  });

  it("[S9-62] replace nothing when no threshold is set", async () => {
    const s = await setup([it_(() => outputs)]);
    expect((await s.run()).response?.output).toEqual(outputs);
    expect(s.orchestrator.blobs.size).toBe(0);
  });
});

describe("runs that a component starts", () => {
  const completed = {
    runId: "r2",
    flowId: "f2",
    flowName: "sub",
    status: ExecutionStatus.COMPLETED,
    items: { total: 1, completed: 1, running: 0, failed: 0, cancelled: 0 },
    rootRunId: "r2",
    results: [{ itemIndex: 0, status: ExecutionStatus.COMPLETED, output: { x: 1 } }],
  };

  it("[S9-19] can be waited for, and return their output", async () => {
    const s = await setup([it_((input, stepflow) => stepflow.evaluate({ flow: { steps: [] }, input, variables: { v: 1 } }))]);
    const submitted: OrchestratorSubmitRunRequest[] = [];
    s.orchestrator.answers.submitRun = (request) => {
      submitted.push(request);
      return completed;
    };
    expect((await s.run({ n: 1 })).response?.output).toEqual({ x: 1 });
    expect(submitted).toEqual([
      {
        runRequest: { flowId: id(0), input: [{ n: 1 }], variables: { v: 1 }, wait: true, timeoutSecs: 50 },
        subflowKey: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-5/),
        rootRunId: "r1",
      },
    ]);
    expect(s.orchestrator.blobs.get(id(0))).toEqual({ json: { steps: [] }, type: "flow" });
  });

  it("can be read: status, counts, results and errors by item", async () => {
    const s = await setup([it_((_input, stepflow) => stepflow.getRun("r2", { results: true, order: "completion" }))]);
    const results = [
      { itemIndex: 1, status: ExecutionStatus.FAILED, errorMessage: "boom", errorCode: 3 },
      { itemIndex: 0, status: ExecutionStatus.RUNNING },
    ];
    s.orchestrator.answers.getRun = () => ({ ...completed, status: ExecutionStatus.RUNNING, parentRunId: "r1", results });
    expect((await s.run()).response?.output).toEqual({
      runId: "r2",
      flowId: "f2",
      flowName: "sub",
      status: "running",
      items: completed.items,
      rootRunId: "r2",
      parentRunId: "r1",
      results: [
        { index: 1, status: "failed", error: { code: 3, message: "boom" } },
        { index: 0, status: "running" },
      ],
    });
    const [asked] = s.orchestrator.of("GetRun");
    expect(asked?.request).toEqual({ runId: "r2", wait: false, includeResults: true, resultOrder: 2, rootRunId: "r1" });
  });

  it("that cannot be started report why", async () => {
    const s = await setup([it_((_input, stepflow) => stepflow.submitRun({ flowId: "nope", input: [1] }))]);
    s.orchestrator.answers.submitRun = () => {
      throw new GrpcError(GrpcCode.NOT_FOUND, "flow 'nope' not found");
    };
    expect((await s.run()).error?.message).toMatch(/^SubmitRun at .* failed with NOT_FOUND: flow 'nope' not found/);
  });

  it("are not waited for any longer when the task is cancelled", async () => {
    const s = await setup([it_((_input, stepflow) => stepflow.evaluate({ flowId: "f", input: 1 }))]);
    s.orchestrator.answers.submitRun = () => new Promise(() => {});
    await s.orchestrator.send(s.orchestrator.task("t1", { componentId: "it" }));
    await until(() => s.orchestrator.of("SubmitRun").length === 1);
    s.orchestrator.answers.beat = () => ({ status: 1, shouldAbort: true });
    await s.pass(() => s.orchestrator.results.length === 1);
    expect((await s.orchestrator.result("t1")).error?.code).toBe(TaskErrorCode.CANCELLED);
  });
});
