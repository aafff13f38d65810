import { describe, expect, it } from "vitest";
import { stepflowFromEnvironment } from "./from-environment.ts";
import { grpcSettings } from "./grpc/options.ts";
import { natsSettings } from "./nats/options.ts";

describe("the options of a worker on a queue", () => {
  it("have the defaults of the reference", () => {
    expect(grpcSettings(undefined, { env: {} })).toEqual({
      url: "localhost:7837",
      queue: "default",
      workerId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      blobUrl: undefined,
      blobThresholdBytes: 0,
      token: undefined,
      tls: undefined,
      slots: undefined,
      drainMs: undefined,
    });
    expect(natsSettings(undefined, { env: {} })).toMatchObject({
      servers: ["nats://localhost:4222"],
      stream: "STEPFLOW_TASKS",
      consumer: "stepflow-default",
      access: {},
      orchestratorUrl: undefined,
    });
  });

  it("[S-QUEUE-22] are read from the environment, and the queue has the name of the stream by default", () => {
    const env = {
      STEPFLOW_NATS_URL: "nats://a:4222, nats://b:4223",
      STEPFLOW_NATS_STREAM: "GPU",
      STEPFLOW_NATS_CONSUMER: "pool",
      STEPFLOW_QUEUE_NAME: "python",
      STEPFLOW_BLOB_URL: "blobs:1",
      STEPFLOW_BLOB_THRESHOLD_BYTES: "1048576",
      STEPFLOW_MAX_CONCURRENT: "4",
      STEPFLOW_SHUTDOWN_GRACE_SECS: "10",
    };
    expect(natsSettings(undefined, { env })).toMatchObject({
      servers: ["nats://a:4222", "nats://b:4223"],
      stream: "GPU",
      consumer: "pool",
      blobUrl: "blobs:1",
      blobThresholdBytes: 1_048_576,
      slots: 4,
      drainMs: 10_000,
    });
    expect(natsSettings(undefined, { env: { STEPFLOW_QUEUE_NAME: "python", STEPFLOW_NATS_STREAM: " " } }).stream).toBe("python");
  });

  it("are taken from the code rather than from the environment", () => {
    const env = { STEPFLOW_TASKS_URL: "a:1", STEPFLOW_QUEUE_NAME: "a", STEPFLOW_NATS_STREAM: "a", STEPFLOW_NATS_CONSUMER: "a" };
    expect(grpcSettings("b:2", { env, queue: "b", workerId: "w" })).toMatchObject({ url: "b:2", queue: "b", workerId: "w" });
    expect(natsSettings("b:2", { env, stream: "b", consumer: "b" })).toMatchObject({ servers: ["nats://b:2"], stream: "b", consumer: "b" });
    expect(natsSettings("b:2", { env, queue: "b" }).stream).toBe("b");
  });

  it.each([
    ["nats://ada:secret@h:4222", { user: "ada", pass: "secret" }, "nats://h:4222"],
    ["nats://a%40b:p%3A@h:4222", { user: "a@b", pass: "p:" }, "nats://h:4222"],
    ["nats://token@h:4222", { token: "token" }, "nats://h:4222"],
    ["tls://token@h:4222", { token: "token", tls: {} }, "tls://h:4222"],
    ["h:4222", {}, "nats://h:4222"],
    ["nats://ada:100%@h:4222", { user: "ada", pass: "100%" }, "nats://h:4222"],
  ])("may name a login in the address: %s", (url, access, server) => {
    expect(natsSettings(url, { env: {} })).toMatchObject({ access, servers: [server] });
  });

  it.each([
    [() => grpcSettings("not an address", { env: {} }), 'The orchestrator\'s address is "not an address", expected HOST:PORT'],
    [() => grpcSettings(undefined, { env: {}, queue: " " }), 'queue is " ", expected a text'],
    [() => grpcSettings(undefined, { env: {}, blobThresholdBytes: -1 }), "blobThresholdBytes is -1, expected a whole number of bytes"],
    [
      () => grpcSettings(undefined, { env: { STEPFLOW_MAX_CONCURRENT: "0" } }),
      'STEPFLOW_MAX_CONCURRENT is "0", expected a whole number from 1',
    ],
    [() => grpcSettings(undefined, { env: { STEPFLOW_SHUTDOWN_GRACE_SECS: "1m" } }), "expected a whole number from 0 to 3600"],
    [() => natsSettings("http://h:1", { env: {} }), 'The NATS server\'s address is "http://h:1", expected one such as'],
    [() => natsSettings(undefined, { env: {}, stream: "a.b" }), 'stream is "a.b", expected a name without spaces, dots'],
    [() => natsSettings(undefined, { env: { STEPFLOW_NATS_CONSUMER: "a b" } }), 'consumer is "a b", expected a name without'],
    [() => grpcSettings(undefined, { env: { STEPFLOW_TASKS_URL: ":::" } }), 'STEPFLOW_TASKS_URL: The orchestrator\'s address is ":::"'],
    [
      () => grpcSettings(undefined, { env: { STEPFLOW_BLOB_URL: "ftp://h" } }),
      'STEPFLOW_BLOB_URL: blobUrl is "ftp://h", expected HOST:PORT',
    ],
    [() => natsSettings(undefined, { env: { STEPFLOW_TASKS_URL: "h" } }), 'STEPFLOW_TASKS_URL: orchestratorUrl is "h", expected HOST:PORT'],
    [() => natsSettings(undefined, { env: { STEPFLOW_NATS_URL: "http://h" } }), "STEPFLOW_NATS_URL: The NATS server's address is"],
    [() => natsSettings(undefined, { env: { STEPFLOW_NATS_STREAM: "a.b" } }), 'STEPFLOW_NATS_STREAM: stream is "a.b"'],
    [() => natsSettings(undefined, { env: { STEPFLOW_QUEUE_NAME: "a.b" } }), 'STEPFLOW_QUEUE_NAME: stream is "a.b"'],
    [
      () => stepflowFromEnvironment({ STEPFLOW_TRANSPORT: "carrier-pigeon" }),
      'STEPFLOW_TRANSPORT is "carrier-pigeon", expected grpc, nats or http',
    ],
  ])("is refused when it is wrong: %s", (make, message) => {
    expect(make).toThrow(message);
  });
});

describe("the transport that the environment sets", () => {
  it.each([
    [{ STEPFLOW_TRANSPORT: "grpc" }, "stepflow localhost:7837 queue default"],
    [{ STEPFLOW_TRANSPORT: "NATS" }, "stepflow nats://localhost:4222 stream STEPFLOW_TASKS"],
    [{ STEPFLOW_TASKS_URL: "http://h:1/" }, "stepflow h:1 queue default"],
    [{ STEPFLOW_NATS_URL: "nats://ada:secret@h:1" }, "stepflow nats://h:1 stream STEPFLOW_TASKS"],
    [{ STEPFLOW_TRANSPORT: "http", STEPFLOW_TASKS_URL: "h:1" }, "stepflow-http 127.0.0.1:0"],
    [{ STEPFLOW_QUEUE_NAME: "python" }, undefined],
    [{}, undefined],
  ])("by %j is %s", (env, name) => {
    expect(stepflowFromEnvironment(env)?.name).toBe(name);
  });
});
