// Stepflow over HTTP, in literal messages: the form of a request, the handshake, and the two forms of a response.

import { request } from "node:http";
import { describe, expect, it } from "vitest";
import { task } from "../../../src/core/task.ts";
import { setup } from "../../support/stepflow-runtime.ts";

const echo = task("echo", (input: unknown) => input as object);
const putting = task("putting", async (_input: unknown, ctx) => ({ id: await ctx.blobs.put("kept") }));
const tasks = [echo, putting];

const message = (method: string, params: unknown = {}, id: unknown = "m-1") => JSON.stringify({ jsonrpc: "2.0", id, method, params });

describe("the handshake", () => {
  it("[S-HTTP-03, S-HTTP-17, S-HTTP-18] responds to initialize with version 1, with the keys of both dialects, and accepts initialized", async () => {
    await using s = await setup({ tasks, handshake: "none" });
    const observability = { trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890", span_id: "1234567890abcdef" };
    const answer = await s.runtime.post(message("initialize", { runtime_protocol_version: 1, observability }, "init-001"));
    expect(answer.status).toBe(200);
    expect(answer.json).toEqual({
      jsonrpc: "2.0",
      id: "init-001",
      result: { server_protocol_version: 1, serverProtocolVersion: 1, supportsBlobRefs: true },
    });
    expect((await s.runtime.call("initialize", { runtimeProtocolVersion: 1, capabilities: {} })).result).toMatchObject({
      serverProtocolVersion: 1,
    });
    // The second step: a notification, after which work is accepted.
    expect((await s.runtime.send({ jsonrpc: "2.0", method: "initialized", params: {} })).status).toBe(202);
    expect((await s.runtime.execute("/echo", { a: 1 })).answer.result).toEqual({ output: { a: 1 } });
  });

  it.each([
    [{}, "params.runtime_protocol_version is missing"],
    [{ runtime_protocol_version: "1" }, 'params.runtime_protocol_version is "1"'],
    [{ runtime_protocol_version: 1.5 }, "params.runtime_protocol_version is 1.5"],
    [{ runtimeProtocolVersion: -1 }, "params.runtimeProtocolVersion is -1"],
    [{ runtime_protocol_version: 1, observability: 5 }, "params.observability is 5"],
    [{ runtime_protocol_version: 1, observability: { trace_id: 5 } }, "params.observability.trace_id is 5"],
    [{ runtimeProtocolVersion: 1, capabilities: { blobApiUrl: "nowhere" } }, "params.capabilities.blobApiUrl is"],
    [{ runtimeProtocolVersion: 1, capabilities: { blobThreshold: "big" } }, "params.capabilities.blobThreshold is"],
  ])("[S-HTTP-17] refuses initialize with %j, by its field", async (params, text) => {
    await using s = await setup({ tasks, handshake: "none" });
    const { error } = await s.runtime.call("initialize", params);
    expect(error.code).toBe(-32602);
    expect(error.message).toContain(text);
    expect(error.data).toHaveProperty("expected");
  });

  it("[S-HTTP-04, S-HTTP-20, S-ERR-09] must be complete before other requests are accepted", async () => {
    await using s = await setup({ tasks, handshake: "none" });
    const methods = ["components/list", "components/info", "components/execute", "components/infer_schema", "nonsense"];
    for (const method of methods) {
      expect((await s.runtime.call(method, { component: "/echo", input: {} })).error).toMatchObject({
        code: -32002,
        data: { expected: "initialize" },
      });
    }
    // Without an initialize before it, it has no effect.
    expect((await s.runtime.send({ jsonrpc: "2.0", method: "initialized", params: {} })).status).toBe(202);
    expect((await s.runtime.call("components/list")).error.code).toBe(-32002);
    await s.runtime.call("initialize", { runtime_protocol_version: 1 });
    expect((await s.runtime.call("components/list")).error).toMatchObject({ code: -32002, data: { expected: "initialized" } });
    await s.runtime.send({ jsonrpc: "2.0", method: "initialized", params: {} });
    expect((await s.runtime.call("components/list")).result.components).toHaveLength(2);
  });

  it("may be repeated by a runtime that restarts, and does not block another one", async () => {
    await using s = await setup({ tasks });
    await s.runtime.call("initialize", { runtime_protocol_version: 1 });
    expect((await s.runtime.execute("/echo", { a: 1 })).answer.result).toEqual({ output: { a: 1 } });
  });

  it("[S-HTTP-19] returns our version to a runtime of another version, which disconnects without an effect on the worker", async () => {
    await using s = await setup({ tasks, handshake: "none" });
    expect((await s.runtime.call("initialize", { runtime_protocol_version: 7 })).result.server_protocol_version).toBe(1);
    s.runtime.close();
    expect((await s.runtime.call("components/list")).error.code).toBe(-32002);
    await s.runtime.handshake();
    expect((await s.runtime.execute("/echo", 5)).answer.result).toEqual({ output: 5 });
  });

  it("is not required behind a load balancer, which sends initialize to only one replica", async () => {
    await using s = await setup({ tasks, handshake: "none", http: { handshake: false } });
    expect((await s.runtime.execute("/echo", { a: 1 })).answer.result).toEqual({ output: { a: 1 } });
  });
});

describe("a request", () => {
  it("[S-HTTP-10, S-HTTP-11] is POST /; other methods and paths except the health page get an error that names it", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.post(message("components/list"))).status).toBe(200);
    expect((await s.runtime.post(message("components/list"), {}, "/?x=1")).status).toBe(200);
    const got = await s.runtime.get("/");
    expect([got.status, got.headers.allow, got.json.error.message]).toEqual([405, "POST", "GET is not allowed here, expected POST."]);
    expect((await s.runtime.post(message("components/list"), {}, "/rpc")).status).toBe(404);
    expect((await s.runtime.get("/nowhere")).json.error.message).toContain("send messages to POST /");
    // Other paths and methods.
    expect((await s.runtime.get("/health")).status).toBe(200);
  });

  it.each([undefined, "application/json", "text/event-stream", "text/html, application/json", "application/json, text/event-stream;q=0"])(
    "[S-HTTP-15] that accepts %j gets 406",
    async (accept) => {
      await using s = await setup({ tasks });
      const answer = await s.runtime.post(message("components/list"), { accept });
      expect(answer.status).toBe(406);
      expect(answer.json.error).toMatchObject({ code: -32600, message: expect.stringContaining("application/json, text/event-stream") });
    },
  );

  it.each(["*/*", "text/event-stream, application/json", "application/json;q=0.9, text/*", "APPLICATION/JSON, Text/Event-Stream"])(
    "[S-HTTP-15] that accepts %j is accepted",
    async (accept) => {
      await using s = await setup({ tasks });
      expect((await s.runtime.post(message("components/list"), { accept })).status).toBe(200);
    },
  );

  it.each([
    [undefined, 415],
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["application/json; charset=latin1", 415],
    ["application/json; charset=utf-8", 200],
    ["Application/JSON", 200],
  ])("[S-HTTP-16] with the content type %j is answered %i", async (type, status) => {
    await using s = await setup({ tasks });
    expect((await s.runtime.post(message("components/list"), { "content-type": type })).status).toBe(status);
  });

  it("[S9-49] without one of the types gets 406, and with a wrong content type 415", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.post(message("components/list"), { accept: "application/json" })).status).toBe(406);
    expect((await s.runtime.post(message("components/list"), { accept: "text/event-stream" })).status).toBe(406);
    expect((await s.runtime.post(message("components/list"), { "content-type": "text/plain" })).status).toBe(415);
  });

  it("is refused when it is compressed or sent by a web page", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.post(message("components/list"), { "content-encoding": "gzip" })).status).toBe(415);
    expect((await s.runtime.post(message("components/list"), { origin: "http://evil.example" })).status).toBe(403);
  });

  it("above the limit is refused while it arrives, with or without a length, and the next one gets a response", async () => {
    await using s = await setup({ tasks, http: { bodyBytesMax: 2_000 } });
    const large = message("components/execute", { component: "/echo", input: "x".repeat(3_000), attempt: 1 });
    for (const headers of [{}, { "content-length": undefined, "transfer-encoding": "chunked" }]) {
      const answer = await s.runtime.post(large, headers);
      expect([answer.status, answer.json.error.code]).toEqual([413, -32600]);
      expect(answer.json.error.message).toBe("The body is larger than 2000 bytes.");
    }
    expect((await s.runtime.execute("/echo", "small")).answer.result).toEqual({ output: "small" });
  });

  it("that breaks off leaves nothing behind", async () => {
    await using s = await setup({ tasks });
    const broken = request(s.runtime.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "*/*", "content-length": 500 },
    });
    broken.on("error", () => {});
    broken.write('{"jsonrpc"');
    await new Promise<void>((resolve) => broken.once("socket", (socket) => socket.once("connect", resolve)));
    broken.destroy();
    expect((await s.runtime.execute("/echo", 1)).answer.result).toEqual({ output: 1 });
  });
});

describe("a response", () => {
  it("[S-HTTP-01, S-HTTP-12, S-HTTP-32] is JSON, or a stream of events when the component calls back", async () => {
    await using s = await setup({ tasks });
    const plain = await s.runtime.execute("/echo", { n: 1 }, { id: "exec-1" });
    expect(plain).toMatchObject({ status: 200, form: "json", answer: { jsonrpc: "2.0", id: "exec-1", result: { output: { n: 1 } } } });
    expect(plain.headers["content-type"]).toBe("application/json");
    const streamed = await s.runtime.execute("/putting", {}, { id: 7, respond: () => ({ result: { blob_id: "b" } }) });
    expect(streamed).toMatchObject({ status: 200, form: "sse", answer: { jsonrpc: "2.0", id: 7, result: { output: { id: "b" } } } });
  });

  it("on a stream is ASCII, in events that end with two line feeds", async () => {
    const odd = "é\u2028 \r\n 😀";
    const odder = task("odder", async (_input: unknown, ctx) => {
      await ctx.blobs.put(odd);
      return odd;
    });
    await using s = await setup({ tasks: [odder] });
    const { raw, calls, answer } = await s.runtime.execute("/odder", {}, { respond: () => ({ result: { blob_id: "b" } }) });
    expect(raw).toMatch(/^(data: [\x20-\x7e]*\n\n){2}$/);
    expect(calls[0].params.data).toBe(odd);
    expect(answer.result.output).toBe(odd);
  });

  it("[S9-45] to a notification is 202 without a body", async () => {
    await using s = await setup({ tasks, handshake: "none" });
    for (const method of ["initialized", "something/else"]) {
      const answer = await s.runtime.send({ jsonrpc: "2.0", method, params: {} });
      expect([answer.status, answer.text]).toEqual([202, '""']);
    }
  });

  it("keeps any id of the request", async () => {
    await using s = await setup({ tasks });
    for (const id of ["", "ü", 0, -5, 9007199254740991]) {
      expect((await s.runtime.post(message("components/list", {}, id))).json.id).toBe(id);
    }
  });
});

describe("the health page", () => {
  it("[S-BP-01, S-BP-02, S9-52] reports the health, process, time and components of the worker", async () => {
    await using s = await setup({ tasks, handshake: "none", http: { service: "my-worker" } });
    const { status, json, headers } = await s.runtime.get("/health");
    expect(status).toBe(200);
    expect(json).toEqual({
      status: "healthy",
      instanceId: expect.stringMatching(/^[0-9a-f]{16}$/),
      timestamp: "2020-01-01T00:00:00.000Z",
      service: "my-worker",
    });
    expect(headers["stepflow-instance-id"]).toBe(json.instanceId);
    const refused = await s.runtime.post("", { "content-type": undefined }, "/health");
    expect(refused).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" }, json: { error: { code: -32600 } } });
  });

  it("[S-BP-02] has the service name from the environment, and the same process in every response", async () => {
    await using s = await setup({ tasks, http: { env: { STEPFLOW_SERVICE_NAME: "from-env" }, instanceId: "pod-7" } });
    expect((await s.runtime.get("/health")).json).toMatchObject({ service: "from-env", instanceId: "pod-7" });
    const respond = () => ({ result: { blob_id: "b" } });
    expect((await s.runtime.execute("/putting", {}, { respond })).headers["stepflow-instance-id"]).toBe("pod-7");
  });
});

describe("the port", () => {
  it("[S-HTTP-14] is the configured one", async () => {
    await using first = await setup({ tasks });
    const port = Number(new URL(first.runtime.url).port);
    await expect(setup({ tasks, http: { port } })).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG", detail: { field: "port" } });
    first.runtime.close();
    await first.worker.stop({ force: true });
    await using second = await setup({ tasks, http: { port } });
    expect(second.runtime.url).toBe(`http://127.0.0.1:${port}`);
    expect((await second.runtime.get("/health")).status).toBe(200);
  });

  it.each([
    [{ port: 70_000 }, "port is 70000"],
    [{ bodyBytesMax: 1 }, "bodyBytesMax is 1"],
    [{ instanceId: "two words" }, "instanceId is"],
    [{ blobApiUrl: "localhost:7837" }, "blobApiUrl is"],
    [{ env: { STEPFLOW_BLOB_THRESHOLD_BYTES: "big" } }, 'STEPFLOW_BLOB_THRESHOLD_BYTES is "big"'],
  ])("and all other options must be valid: %j", async (http, text) => {
    await expect(setup({ tasks, http })).rejects.toThrow(text);
  });
});
