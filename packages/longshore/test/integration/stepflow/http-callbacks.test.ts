// Stepflow over HTTP: what a component requests from the runtime while it runs.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LongshoreError } from "../../../src/core/errors.ts";
import { task } from "../../../src/core/task.ts";
import { blobIdOfBytes, blobIdOfJson } from "../../../src/protocols/stepflow/wire/blob-id.ts";
import { stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import { type Any, blobStore, setup } from "../../support/stepflow-runtime.ts";
import { deferred, until } from "../../support/until.ts";

const keep = task("keep", async ({ data }: { data: unknown }) => {
  const id = await stepflowTask().putBlob(data);
  return { id, same: JSON.stringify(await stepflowTask().getBlob(id)) === JSON.stringify(data) };
});

describe("blobs over the channel", () => {
  it("[S-HTTP-26, S-HTTP-27] are stored and read by calls in the guide's form", async () => {
    await using s = await setup({ tasks: [keep] });
    const data = { large_result: "..." };
    const observability = { run_id: "run-12345", flow_id: "sha256:abc123", step_id: "process_step" };
    const { answer, calls } = await s.runtime.execute("/keep", { data }, { observability, respond: blobStore().respond });
    const id = blobIdOfJson(data);
    expect(answer.result.output).toEqual({ id, same: true });
    expect(calls).toEqual([
      { jsonrpc: "2.0", id: expect.any(String), method: "blobs/put", params: { data, blob_type: "data", observability } },
      { jsonrpc: "2.0", id: expect.any(String), method: "blobs/get", params: { blob_id: id, observability } },
    ]);
  });

  it("[S-HTTP-28] are data, or the definition of a flow", async () => {
    const both = task("both", async () => {
      await stepflowTask().putBlob({ steps: [] });
      await stepflowTask().submitRun({ flow: { steps: [] }, input: [1] });
      return "kept";
    });
    await using s = await setup({ tasks: [both] });
    const flowId = blobIdOfJson({ steps: [] });
    const respond = (call: Any) => (call.method === "runs/submit" ? { result: { runId: "r", flowId } } : blobStore().respond(call));
    const { calls } = await s.runtime.execute("/both", {}, { respond });
    expect(calls.map(({ method, params }) => [method, params.blob_type ?? params.flowId])).toEqual([
      ["blobs/put", "data"],
      ["blobs/put", "flow"],
      ["runs/submit", flowId],
    ]);
  });

  it("[S-HTTP-09, S-HTTP-30, S9-50] are requested by events and answered by separate POSTs, and the last event has the request's id", async () => {
    await using s = await setup({ tasks: [keep] });
    const { form, headers, calls, acks, answer } = await s.runtime.execute(
      "/keep",
      { data: 1 },
      { id: "exec-9", respond: blobStore().respond },
    );
    expect(form).toBe("sse");
    expect(headers["stepflow-instance-id"]).toMatch(/^[0-9a-f]{16}$/);
    expect(headers["cache-control"]).toBe("no-cache");
    expect(calls.map(({ method }) => method)).toEqual(["blobs/put", "blobs/get"]);
    expect(acks.map(({ status, text }) => [status, text])).toEqual(Array(2).fill([202, '""']));
    expect(answer.id).toBe("exec-9");
  });

  it("[S-HTTP-31, S9-51] of two executions at once are assigned by their ids, for any order of responses", async () => {
    const both = task("both", async ({ name }: { name: string }) => {
      const answers = await Promise.all([0, 1, 2].map((n) => stepflowTask().putBlob(`${name}${n}`)));
      return { name, answers };
    });
    await using s = await setup({ tasks: [both] });
    const waiting: { call: Any; answer: (value: Any) => void }[] = [];
    const respond = (call: Any) => {
      const held = deferred<Any>();
      waiting.push({ call, answer: held.resolve });
      return held.promise;
    };
    const executions = ["a", "b"].map((name) => s.runtime.execute("/both", { name }, { respond }));
    await until(() => waiting.length === 6);
    expect(new Set(waiting.map(({ call }) => call.id)).size).toBe(6);
    for (const { call, answer } of waiting.reverse()) answer({ result: { blob_id: `id of ${call.params.data}` } });
    const outputs = (await Promise.all(executions)).map(({ answer }) => answer.result.output);
    expect(outputs).toEqual(["a", "b"].map((name) => ({ name, answers: [0, 1, 2].map((n) => `id of ${name}${n}`) })));
  });

  it("[S-HTTP-29] are returned for ids with or without the prefix, and requested without it", async () => {
    const get = task("get", async ({ id }: { id: string }, ctx) => Buffer.from(await ctx.blobs.get(id)).toString());
    const put = task("put", async (_input: unknown, ctx) => ctx.blobs.put("text"));
    await using s = await setup({ tasks: [get, put] });
    const bare = blobIdOfJson("text");
    const respond = ({ method }: Any) =>
      method === "blobs/put" ? { result: { blob_id: `sha256:${bare}` } } : { result: { data: "text", blob_type: "data" } };
    expect((await s.runtime.execute("/put", {}, { respond })).answer.result.output).toBe(bare);
    const { calls, answer } = await s.runtime.execute("/get", { id: `sha256:${bare}` }, { respond });
    expect(calls[0].params.blob_id).toBe(bare);
    expect(answer.result.output).toBe("text");
  });

  it("can also contain bytes, and any JSON can be read as its text", async () => {
    const bytes = new Uint8Array([0, 255, 128, 10]);
    const roundTrip = task("roundTrip", async (_input: unknown, ctx) => {
      const back = await ctx.blobs.get(await ctx.blobs.put(bytes));
      const json = await ctx.blobs.get(await stepflowTask(ctx).putBlob({ n: 1 }));
      return { bytes: [...back], json: Buffer.from(json).toString() };
    });
    await using s = await setup({ tasks: [roundTrip] });
    const { answer } = await s.runtime.execute("/roundTrip", {}, { respond: blobStore().respond });
    expect(answer.result.output).toEqual({ bytes: [...bytes], json: '{"n":1}' });
  });

  it("that get no response from the runtime fail after a while", async () => {
    await using s = await setup({ tasks: [keep] });
    const execution = s.runtime.execute("/keep", { data: 1 });
    await s.clock.armed(60_000);
    await s.clock.advance(60_000);
    expect((await execution).answer.error).toMatchObject({ code: -32006, message: expect.stringContaining("did not answer blobs/put") });
  });

  it("end with the execution: a response without a waiting execution gets 400", async () => {
    const careless = task("careless", async (_input: unknown, ctx) => {
      ctx.blobs.put("x").catch(() => {});
      await new Promise((resolve) => setImmediate(resolve));
      return "done";
    });
    await using s = await setup({ tasks: [careless] });
    const { answer, calls } = await s.runtime.execute("/careless");
    expect(answer.result.output).toBe("done");
    expect((await s.runtime.send({ jsonrpc: "2.0", id: calls[0].id, result: { blob_id: "late" } })).status).toBe(400);
  });

  it("are limited in number for one execution", async () => {
    const greedy = task("greedy", async (_input: unknown, ctx) => {
      const puts = Array.from({ length: 1_001 }, (_, n) => ctx.blobs.put(`${n}`));
      return Promise.race(puts).catch((error: LongshoreError) => error.code);
    });
    await using s = await setup({ tasks: [greedy] });
    const { answer, calls } = await s.runtime.execute("/greedy");
    expect(calls).toHaveLength(1_000);
    expect(answer.result.output).toBe("LONGSHORE_LIMIT");
  });
});

/** The blob API of HTTP-B, which records its requests. */
async function blobApi(trouble: (tries: number) => number | undefined = () => undefined) {
  const kept = new Map<string, { data: unknown; blobType: string }>();
  const seen: { method: string; path: string; type: string | undefined; traceparent: string | undefined }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { "content-type": type, traceparent } = request.headers as Record<string, string | undefined>;
    seen.push({ method: request.method ?? "", path: request.url ?? "", type, traceparent });
    const failed = trouble(seen.length);
    if (failed !== undefined) return void response.writeHead(failed).end("busy");
    if (request.method === "POST") {
      const raw = type === "application/octet-stream";
      const { data, blobType } = raw ? { data: body.toString("base64"), blobType: "binary" } : JSON.parse(body.toString());
      const blobId = raw ? blobIdOfBytes(body) : blobIdOfJson(data);
      kept.set(blobId, { data, blobType });
      return void response.end(JSON.stringify({ blobId }));
    }
    const blobId = (request.url ?? "").split("/").at(-1) ?? "";
    const found = kept.get(blobId);
    if (found === undefined) return void response.writeHead(404).end();
    response.end(JSON.stringify({ ...found, blobId }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const blobApiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1/blobs`;
  return { kept, seen, blobApiUrl };
}

describe("blobs of the later dialect", () => {
  it("use the runtime's blob API, so that the response stays plain JSON", async () => {
    const api = await blobApi();
    const bytes = task("bytes", async (_input: unknown, ctx) => [...(await ctx.blobs.get(await ctx.blobs.put(new Uint8Array([0, 255]))))]);
    await using s = await setup({ tasks: [keep, bytes], handshake: "B", capabilities: { blobApiUrl: api.blobApiUrl, blobThreshold: 0 } });
    const observability = { trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890", span_id: "1234567890abcdef" };
    const { form, answer } = await s.runtime.execute("/keep", { data: { m: "boom" } }, { observability });
    expect(form).toBe("json");
    expect(answer.result.output).toEqual({ id: blobIdOfJson({ m: "boom" }), same: true });
    expect(api.seen).toMatchObject([
      {
        method: "POST",
        path: "/api/v1/blobs",
        type: "application/json",
        traceparent: "00-a1b2c3d4e5f67890a1b2c3d4e5f67890-1234567890abcdef-01",
      },
      { method: "GET", path: `/api/v1/blobs/${blobIdOfJson({ m: "boom" })}` },
    ]);
    expect((await s.runtime.execute("/bytes")).answer.result.output).toEqual([0, 255]);
  });

  it("use the configured address, also when no runtime has initialised the worker", async () => {
    const api = await blobApi();
    const http = { handshake: false, env: { STEPFLOW_BLOB_API_URL: api.blobApiUrl } };
    await using s = await setup({ tasks: [keep], handshake: "none", http });
    expect(await s.runtime.execute("/keep", { data: 1 })).toMatchObject({ form: "json", answer: { result: { output: { same: true } } } });
  });

  it("are requested again while the API is down, and missing ones fail with the dialect's code", async () => {
    const api = await blobApi((tries) => (tries <= 2 ? 503 : undefined));
    const get = task("get", async ({ id }: { id: string }) => stepflowTask().getBlob(id));
    await using s = await setup({ tasks: [keep, get], handshake: "B", capabilities: { blobApiUrl: api.blobApiUrl } });
    const execution = s.runtime.execute("/keep", { data: 1 });
    const from = s.clock.now();
    let over = false;
    void execution.finally(() => {
      over = true;
    });
    // In small steps, because the pauses begin when the API has responded, and the test clock does not know this time.
    while (!over) await s.clock.advance(10);
    expect((await execution).answer.result.output.same).toBe(true);
    expect(s.clock.now() - from).toBeGreaterThanOrEqual(200 + 1_000);
    expect((await s.runtime.execute("/get", { id: "0".repeat(64) })).answer.error.code).toBe(-32005);
    expect((await s.runtime.execute("/get", { id: "" })).answer.error).toMatchObject({ code: -32003 });
  });

  it("may be references in inputs, which a handler never sees", async () => {
    const api = await blobApi();
    const echo = task("echo", (input: unknown) => input as object);
    await using s = await setup({ tasks: [echo], handshake: "B", capabilities: { blobApiUrl: api.blobApiUrl } });
    const inner = blobIdOfJson([1, 2]);
    api.kept.set(inner, { data: [1, 2], blobType: "data" });
    const outer = blobIdOfJson({ inner: { $blob: inner } });
    api.kept.set(outer, { data: { inner: { $blob: inner } }, blobType: "data" });
    const { answer } = await s.runtime.execute("/echo", { field: { $blob: outer, blobType: "data", size: 99 }, note: "$blob" });
    expect(answer.result.output).toEqual({ field: { inner: [1, 2] }, note: "$blob" });
    const missing = await s.runtime.execute("/echo", { $blob: "f".repeat(64) });
    expect(missing.answer.error).toMatchObject({ code: -32003, message: expect.stringContaining("f".repeat(64)) });
  });

  it("replace large fields of an output when the runtime or an option of the worker requests it", async () => {
    const api = await blobApi();
    const large = "x".repeat(200);
    const big = task("big", () => ({ large, small: "y" }));
    const reference = { $blob: blobIdOfJson(large), blobType: "data", size: 202 };
    const { blobApiUrl } = api;
    const outputs: unknown[] = [];
    for (const [http, capabilities] of [
      [{}, { blobApiUrl, blobThreshold: 100 }],
      [{ blobThresholdBytes: 100 }, { blobApiUrl }],
      [{ blobThresholdBytes: 0 }, { blobApiUrl, blobThreshold: 100 }],
      [{}, { blobApiUrl }],
    ] as const) {
      await using s = await setup({ tasks: [big], handshake: "B", http, capabilities });
      outputs.push((await s.runtime.execute("/big")).answer.result.output);
    }
    expect(outputs).toEqual([
      { large: reference, small: "y" },
      { large: reference, small: "y" },
      { large, small: "y" },
      { large, small: "y" },
    ]);
    expect([...api.kept.values()]).toEqual([{ data: large, blobType: "data" }]);
  });
});

describe("runs", () => {
  const status = (runId: string, more: object = {}) => ({
    runId,
    flowId: "f1",
    flowName: "echo",
    status: "completed",
    items: { total: 1, completed: 1, running: 0, failed: 0, cancelled: 0 },
    createdAt: "2026-11-16T01:26:47.944676060+00:00",
    completedAt: "2026-11-16T01:26:47.948830407+00:00",
    results: [
      {
        itemIndex: 0,
        status: "completed",
        result: { outcome: "success", result: { x: 1 } },
        completedAt: "2026-11-16T01:26:47.948774143Z",
      },
    ],
    ...more,
  });

  it("of other flows can be started and read by the handler", async () => {
    const sub = task("sub", async () => {
      const started = await stepflowTask().submitRun({ flowId: "f1", input: [{ x: 1 }], maxConcurrency: 2, overrides: { steps: {} } });
      const seen = await stepflowTask().getRun(started.runId, { wait: true, results: true, order: "completion", timeoutSecs: 5 });
      return { started, seen };
    });
    await using s = await setup({ tasks: [sub], handshake: "B" });
    const observability = { run_id: "r1", flow_id: "f0", step_id: "s1" };
    const respond = ({ method }: Any) => ({
      result: method === "runs/submit" ? status("r2", { status: "running", results: undefined }) : status("r2"),
    });
    const { calls, answer } = await s.runtime.execute("/sub", {}, { observability, respond });
    expect(calls).toMatchObject([
      {
        method: "runs/submit",
        params: { flowId: "f1", inputs: [{ x: 1 }], wait: false, maxConcurrency: 2, overrides: { steps: {} }, observability },
      },
      {
        method: "runs/get",
        params: { runId: "r2", wait: true, includeResults: true, resultOrder: "by_completion", timeoutSecs: 5, observability },
      },
    ]);
    expect(calls[0].params.subflowKey).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(answer.result.output).toMatchObject({
      started: { runId: "r2", status: "running", results: [] },
      seen: { status: "completed", items: { total: 1, completed: 1 }, results: [{ index: 0, status: "completed", output: { x: 1 } }] },
    });
  });

  it("that a repeated attempt starts have the key of the first attempt", async () => {
    const sub = task("sub", async () => (await stepflowTask().submitRun({ flowId: "f1", input: [1] })).runId);
    await using s = await setup({ tasks: [sub], handshake: "B" });
    const keys: string[] = [];
    const respond = ({ params }: Any) => {
      keys.push(params.subflowKey);
      return { result: status("r2") };
    };
    const observability = { run_id: "r1", step_id: "s1" };
    await s.runtime.execute("/sub", { n: 1 }, { observability, respond });
    await s.runtime.execute("/sub", { n: 1 }, { observability, respond, attempt: 2 });
    await s.runtime.execute("/sub", { n: 2 }, { observability, respond });
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("that fail throw an error in the handler that waits for their output", async () => {
    const evaluate = task("evaluate", async () => stepflowTask().evaluate({ flow: { steps: [] }, input: { x: 1 } }));
    await using s = await setup({ tasks: [evaluate] });
    const failed = {
      status: "failed",
      results: [{ itemIndex: 0, status: "failed", result: { outcome: "failed", error: { code: 500, message: "step broke" } } }],
    };
    const respond = ({ method }: Any) => ({ result: method === "blobs/put" ? { blob_id: "f9" } : status("r2", failed) });
    const { calls, answer } = await s.runtime.execute("/evaluate", {}, { respond });
    expect(calls[0]).toMatchObject({ method: "blobs/put", params: { data: { steps: [] }, blob_type: "flow" } });
    expect(calls[1].params.flowId).toBe("f9");
    expect(answer.error).toMatchObject({ code: -32004, message: expect.stringContaining("step broke") });
  });

  it("refuse variables over HTTP, with an error", async () => {
    const sub = task("sub", async () => stepflowTask().submitRun({ flowId: "f1", input: [1], variables: { a: 1 } }) as Promise<object>);
    await using s = await setup({ tasks: [sub] });
    expect((await s.runtime.execute("/sub")).answer.error.message).toContain("takes no variables");
  });
});
