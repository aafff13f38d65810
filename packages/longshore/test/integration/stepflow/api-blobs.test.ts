// Blobs and components over REST.

import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { parseConfig } from "../../../src/protocols/stepflow/server/config/parse.ts";
import { keepComponents } from "../../../src/protocols/stepflow/server/config/registered-components.ts";
import { BlobService } from "../../../src/protocols/stepflow/wire/services.ts";
import { raw, startStepflow } from "../../support/stepflow-server.ts";

const bytesType = "application/octet-stream";
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

describe("blobs", () => {
  it("[S9-60] of JSON are read unchanged, by their hash", async () => {
    const { call } = await startStepflow();
    const text = '{"b":[1.0,9007199254740993],"2":null,"1":"é"}';
    const put = await call("POST", "/blobs", raw(`{"data": ${text.replaceAll(",", " , ")}, "blobType": "data", "filename": "x.json"}`));
    expect(put.body).toEqual({ blobId: hashOf(text), filename: "x.json" });
    const got = await call("GET", `/blobs/${put.body.blobId}`, undefined, { accept: bytesType });
    expect(Buffer.from(got.body).toString("utf8")).toBe(text);
    expect(got.headers.get("x-blob-type")).toBe("data");
    expect(got.headers.get("content-disposition")).toBe('attachment; filename="x.json"');
    const shown = await call("GET", `/blobs/sha256:${put.body.blobId}`);
    expect(shown.body).toMatchObject({ data: JSON.parse(text), blobType: "data", blobId: put.body.blobId, filename: "x.json" });
  });

  it("[S9-60] may have their data in each of the fields that clients use", async () => {
    const { call } = await startStepflow();
    const bodies: JsonObject[] = [
      { data: { a: 1 } },
      { jsonData: { a: 1 } },
      { json_data: { a: 1 }, blob_type: "data" },
      { data: { a: 1 }, blobType: "flow" },
    ];
    for (const body of bodies) {
      expect((await call("POST", "/blobs", body)).body).toEqual({ blobId: hashOf('{"a":1}') });
    }
    expect((await call("POST", "/blobs", { data: null })).body.blobId).toBe(hashOf("null"));
  });

  it("[S9-60] of bytes are read as bytes with their name, and cannot be read as JSON", async () => {
    const { call } = await startStepflow();
    const bytes = new Uint8Array([0, 255, 10, 13, 128]);
    const put = await call("POST", "/blobs", bytes, { "content-type": bytesType, "x-blob-filename": "h.bin" });
    expect(put.body).toEqual({ blobId: createHash("sha256").update(bytes).digest("hex"), filename: "h.bin" });
    const got = await call("GET", `/blobs/${put.body.blobId}`, undefined, { accept: `application/json, ${bytesType}` });
    expect(got.body).toEqual(bytes);
    expect(got.headers.get("content-type")).toBe(bytesType);
    expect(got.headers.get("x-blob-type")).toBe("binary");
    expect(got.headers.get("content-disposition")).toBe('attachment; filename="h.bin"');
    const shown = await call("GET", `/blobs/${put.body.blobId}`);
    expect(shown.body).toEqual({ data: null, blobType: "binary", blobId: put.body.blobId, filename: "h.bin", contentType: bytesType });
  });

  it("[S9-60] are refused when they do not exist, have an invalid id, or cannot be stored", async () => {
    const { call } = await startStepflow();
    const error = (code: number, status: string, message: string) => ({
      error: { code, status, message: expect.stringContaining(message) },
    });
    const missing = await call("GET", `/blobs/${"0".repeat(64)}`);
    expect([missing.status, missing.body]).toEqual([404, error(404, "NOT_FOUND", "not found")]);
    const malformed = await call("GET", "/blobs/xyz");
    expect([malformed.status, malformed.body]).toEqual([400, error(400, "INVALID_ARGUMENT", 'blob_id is "xyz"')]);
    expect((await call("POST", "/blobs", {})).body).toEqual(error(400, "INVALID_ARGUMENT", "data is missing"));
    expect((await call("POST", "/blobs", { data: 1, blobType: "picture" })).body).toEqual(
      error(400, "INVALID_ARGUMENT", "expected one of data, flow, binary"),
    );
    expect((await call("POST", "/blobs", raw("{nope"))).body).toEqual(error(400, "INVALID_ARGUMENT", "line 1 column 2"));
    expect((await call("POST", "/blobs", raw("[]"))).body).toEqual(error(400, "INVALID_ARGUMENT", "expected an object"));
    expect((await call("POST", "/blobs", raw("x"), { "content-type": "text/plain" })).body).toEqual(
      error(400, "INVALID_ARGUMENT", "content type"),
    );
    expect((await call("POST", "/blobs", { data: 1, filename: "x".repeat(300) })).body).toEqual(
      error(400, "INVALID_ARGUMENT", "300 characters"),
    );
  });

  it("[S9-60] are the same over REST and gRPC", async () => {
    const { call, channel } = await startStepflow();
    const { blobId } = await channel.unary(BlobService.PutBlob, { jsonData: { b: 1, a: [null, 2.5] }, blobType: "data" });
    expect(blobId).toBe(hashOf('{"a":[null,2.5],"b":1}'));
    expect((await call("GET", `/blobs/${blobId}`)).body.data).toEqual({ a: [null, 2.5], b: 1 });
    const put = (await call("POST", "/blobs", raw("bytes"), { "content-type": bytesType })).body;
    expect(Buffer.from((await channel.unary(BlobService.GetBlob, { blobId: put.blobId })).rawData ?? []).toString()).toBe("bytes");
  });

  it("are not available when the configuration turns them off", async () => {
    const { config } = parseConfig(
      "plugins: { b: { type: builtin } }\nroutes: { /builtin: [ { plugin: b } ] }\nblobApi: { enabled: false }\n",
      { file: "c.yml", environment: {} },
    );
    const { call } = await startStepflow({ config });
    expect((await call("POST", "/blobs", { data: 1 })).status).toBe(404);
  });
});

describe("components", () => {
  const file = `
plugins:
  builtin: { type: builtin }
  python: { type: grpc, queueName: python }
  away: { type: grpc, queueName: away }
  mock: { type: mock, components: { /one: { input_schema: { type: object }, output_schema: { type: string }, behaviors: {} } } }
routes:
  "/builtin": [ { plugin: builtin } ]
  "/python": [ { plugin: python } ]
  "/gpu": [ { plugin: python, queueName: gpu } ]
  "/away": [ { plugin: away } ]
  "/mock": [ { plugin: mock } ]
`;

  it("[S9-59] are the built-in ones, those of mocks, and those that workers have registered, in order", async () => {
    const { config } = parseConfig(file, { file: "c.yml", environment: {} });
    const { call, engine } = await startStepflow({ config });
    const echo = { id: "echo", path: "/echo", description: "Says it again.", inputSchema: { type: "object" } };
    // Two queues of one plugin, whose workers have the same component: it is listed once.
    for (const lane of ["stepflow:python", "stepflow:gpu"]) await keepComponents(engine.documents, lane, [echo]);
    const { body } = await call("GET", "/components");
    expect(body.components.map(({ componentId, path, plugin }: { [key: string]: string }) => [componentId, path, plugin])).toEqual([
      ["/create_messages", "/create_messages", "builtin"],
      ["echo", "/echo", "python"],
      ["/eval", "/eval", "builtin"],
      ["/get_blob", "/get_blob", "builtin"],
      ["/iterate", "/iterate", "builtin"],
      ["/load_file", "/load_file", "builtin"],
      ["/map", "/map", "builtin"],
      ["/noop", "/noop", "builtin"],
      ["/one", "/one", "mock"],
      ["/openai", "/openai", "builtin"],
      ["/put_blob", "/put_blob", "builtin"],
      ["/sleep", "/sleep", "builtin"],
    ]);
    expect(body.components[1]).toMatchObject({ description: "Says it again.", inputSchema: { type: "object" } });
    expect(body.components[0]).toMatchObject({ inputSchema: { required: ["user_prompt"] }, outputSchema: { type: "object" } });
    expect([body.complete, body.failedPlugins]).toEqual([false, [{ plugin: "away", error: "no worker has connected yet" }]]);
    const bare = (await call("GET", "/components?excludeSchemas=true")).body.components;
    expect(bare).toHaveLength(12);
    for (const [at, component] of bare.entries()) {
      const { inputSchema, outputSchema, ...rest } = body.components[at];
      expect(component).toEqual(rest);
    }
  });
});
