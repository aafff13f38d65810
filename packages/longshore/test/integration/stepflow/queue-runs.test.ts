// What the components of workers request from their orchestrator: runs of other flows, and blobs.

import { createHash, randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json/json.ts";
import { GrpcCode } from "../../../src/net/grpc/status.ts";
import { ExecutionStatus } from "../../../src/protocols/stepflow/wire/messages.ts";
import { BlobService, OrchestratorService, RunsService } from "../../../src/protocols/stepflow/wire/services.ts";
import { type FlowServer, flowServer, step } from "../../support/stepflow-flows.ts";

const outer = { name: "outer", steps: [step("ask", "/python/echo")], output: { $step: "ask" } };
const inner = { name: "inner", steps: [step("work", "/builtin/noop")], output: { $step: "work" } };

/** A worker does a step, and may send any requests. */
async function asking(): Promise<FlowServer & { runId: string; flowId: string; submit(more?: object): Promise<Status> }> {
  const server = await flowServer();
  const ann = server.pull();
  await ann.register({ componentId: "echo" });
  const runId = await server.run(outer);
  const { taskId, context } = await ann.next();
  await server.heartbeat(taskId);
  const flowId = await server.store(inner);
  const submit = ({ subflowKey, rootRunId = context?.rootRunId, ...more }: { subflowKey?: string; rootRunId?: string } = {}) =>
    server.channel.unary(OrchestratorService.SubmitRun, {
      runRequest: { flowId, input: ["x"], wait: true, ...more },
      ...(subflowKey === undefined ? {} : { subflowKey }),
      ...(rootRunId === undefined ? {} : { rootRunId }),
    });
  return { ...server, runId, flowId, submit };
}

type Status = Awaited<ReturnType<FlowServer["channel"]["unary"]>> & { readonly runId: string };

describe("a run that a component starts", () => {
  it("[S9-19, S-QUEUE-19] can be waited for, and has its results", async () => {
    const { submit, flowId, runId } = await asking();
    const status = await submit();
    expect(status).toMatchObject({
      flowId,
      flowName: "inner",
      status: ExecutionStatus.COMPLETED,
      items: { total: 1, completed: 1, running: 0, failed: 0, cancelled: 0 },
      results: [{ itemIndex: 0, status: ExecutionStatus.COMPLETED, output: "x" }],
      rootRunId: runId,
      parentRunId: runId,
    });
  });

  it("is started once, for any number of requests with one key", async () => {
    const { submit } = await asking();
    const ids = [];
    for (const subflowKey of ["k1", "k1", "k2"]) ids.push((await submit({ subflowKey })).runId);
    ids.push((await submit()).runId, (await submit()).runId);
    expect(ids[0]).toBe(ids[1]);
    expect(new Set(ids).size).toBe(4);
  });

  it("is returned in its current state when the wait has ended or was not requested", async () => {
    const { channel, store, runId, clock, pull } = await asking();
    const flowId = await store({ name: "slow", steps: [step("slow", "/python/echo")], output: { $step: "slow" } });
    const ask = (wait: boolean) =>
      channel.unary(OrchestratorService.SubmitRun, { runRequest: { flowId, input: [1], wait, timeoutSecs: 7 }, rootRunId: runId });
    expect(await ask(false)).toMatchObject({ status: ExecutionStatus.RUNNING, results: [] });
    const waiting = ask(true);
    let over = false;
    void waiting.then(() => {
      over = true;
    });
    while (!over) await clock.advance(100);
    expect(await waiting).toMatchObject({ status: ExecutionStatus.RUNNING, items: { running: 1 } });
    pull().leave();
  });

  it("can be read later, with its results or without", async () => {
    const { submit, channel, runId } = await asking();
    const { runId: subRunId } = await submit({ input: ["a", "b"] } as object);
    const get = (more: object) => channel.unary(OrchestratorService.GetRun, { runId: subRunId, rootRunId: runId, ...more });
    expect(await get({})).toMatchObject({ status: ExecutionStatus.COMPLETED, items: { total: 2, completed: 2 }, results: [] });
    expect((await get({ includeResults: true, wait: true })).results.map(({ output }) => output)).toEqual(["a", "b"]);
    const { runs } = await channel.unary(RunsService.ListRuns, { parentRunId: runId });
    expect(runs.map((run) => run.runId)).toEqual([subRunId]);
  });

  it.each([
    ["no request", {}, GrpcCode.INVALID_ARGUMENT],
    ["a malformed root run", { runRequest: { flowId: "0".repeat(64) }, rootRunId: "root" }, GrpcCode.INVALID_ARGUMENT],
    [
      "a root run that is not here",
      { runRequest: { flowId: "0".repeat(64), input: [1] }, rootRunId: "0193a5b0-9d0f-7c3e-8a51-2f6d0b7c9e11" },
      GrpcCode.NOT_FOUND,
    ],
    ["a flow that nobody stored", { runRequest: { flowId: "0".repeat(64), input: [1] } }, GrpcCode.NOT_FOUND],
    ["what is no flow's id", { runRequest: { flowId: "inner", input: [1] } }, GrpcCode.INVALID_ARGUMENT],
  ])("is refused with %s", async (_, request, code) => {
    const { channel } = await flowServer();
    await expect(channel.unary(OrchestratorService.SubmitRun, request)).rejects.toMatchObject({ code });
  });

  it("may be of a flow that the component has just stored only as a blob", async () => {
    const { channel, runId } = await asking();
    const { blobId } = await channel.unary(BlobService.PutBlob, { jsonData: inner, blobType: "flow" });
    const runRequest = { flowId: blobId, input: ["kept"], wait: true };
    expect(await channel.unary(OrchestratorService.SubmitRun, { runRequest, rootRunId: runId })).toMatchObject({
      status: ExecutionStatus.COMPLETED,
      results: [{ output: "kept" }],
    });
  });
});

describe("blobs", () => {
  const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

  it.each<[string, Json, string]>([
    ["with its keys in order", { b: [1, { z: null, a: "ü" }], a: true }, '{"a":true,"b":[1,{"a":"ü","z":null}]}'],
    ["that is a text", "text", '"text"'],
    ["that is null", null, "null"],
  ])("[S-QUEUE-20] JSON %s is stored under the hash of its compact text, and can be read", async (_, jsonData, text) => {
    const { channel } = await flowServer();
    const { blobId } = await channel.unary(BlobService.PutBlob, { jsonData });
    expect(blobId).toBe(sha256(text));
    for (const id of [blobId, `sha256:${blobId}`])
      expect(await channel.unary(BlobService.GetBlob, { blobId: id })).toEqual({ jsonData, blobType: "data", blobId });
  });

  it("of bytes are read unchanged, with their file name", async () => {
    const { channel } = await flowServer();
    const rawData = randomBytes(3 * 1_024 * 1_024);
    const put = await channel.unary(BlobService.PutBlob, { rawData, blobType: "binary", filename: "a.bin" });
    expect(put).toEqual({ blobId: sha256(rawData), filename: "a.bin" });
    const got = await channel.unary(BlobService.GetBlob, { blobId: put.blobId });
    expect(Buffer.compare(got.rawData ?? new Uint8Array(), rawData)).toBe(0);
    expect(got).toMatchObject({ blobType: "binary", filename: "a.bin", contentType: "application/octet-stream" });
  });

  it.each([
    ["without content", { blobType: "data" }, "content"],
    ["of an unknown type", { jsonData: 1, blobType: "tarball" }, "blob_type"],
    ["that are flows and no JSON", { rawData: new Uint8Array([1]), blobType: "flow" }, "blob_type"],
    ["that are binary and JSON", { jsonData: 1, blobType: "binary" }, "blob_type"],
  ])("%s are refused by the name of the field", async (_, request, field) => {
    const { channel } = await flowServer();
    await expect(channel.unary(BlobService.PutBlob, request)).rejects.toMatchObject({
      code: GrpcCode.INVALID_ARGUMENT,
      message: expect.stringMatching(new RegExp(`^${field} `)),
    });
  });

  it("that do not exist are NOT_FOUND, and invalid ids are refused", async () => {
    const { channel } = await flowServer();
    const get = (blobId: string) => channel.unary(BlobService.GetBlob, { blobId });
    await expect(get("0".repeat(64))).rejects.toMatchObject({ code: GrpcCode.NOT_FOUND });
    for (const id of ["", "x", "0".repeat(63), "G".repeat(64)])
      await expect(get(id)).rejects.toMatchObject({ code: GrpcCode.INVALID_ARGUMENT, message: expect.stringContaining("blob_id") });
  });
});
