// Stepflow over HTTP: the methods of a worker.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { task } from "../../../src/core/task.ts";
import { stepflowTask } from "../../../src/protocols/stepflow/worker/index.ts";
import { setup } from "../../support/stepflow-runtime.ts";

const process_data = task("process_data", async ({ records }) => ({ processed: records, count: records.length }), {
  description: "Process and transform data records",
  input: z.object({ records: z.array(z.unknown()), operation: z.string() }),
  output: z.object({ processed: z.array(z.unknown()), count: z.int() }),
});
const plain = task("plain", (input: unknown, ctx) => ({ input, attempt: ctx.attempt }) as object);
const core = task("core", () => ({ ...stepflowTask().pathParams, component: stepflowTask().component }), { path: "/core/{lang}/{*rest}" });
const tasks = [process_data, plain, core];

const described = {
  component: "/process_data",
  description: "Process and transform data records",
  input_schema: {
    type: "object",
    properties: { records: { type: "array" }, operation: { type: "string" } },
    required: ["records", "operation"],
  },
  output_schema: { type: "object", properties: { processed: { type: "array" }, count: { type: "integer" } } },
};

describe("components/list", () => {
  it("[S-HTTP-05, S-HTTP-21, S-BP-03] lists every component with its description and schemas", async () => {
    await using s = await setup({ tasks });
    const { result } = await s.runtime.call("components/list");
    expect(result.components).toMatchObject([described, { component: "/plain" }, { component: "/core/{lang}/{*rest}" }]);
    expect(result.components[1]).toEqual({ component: "/plain" });
  });

  it("needs no parameters", async () => {
    await using s = await setup({ tasks });
    const { json } = await s.runtime.send({ jsonrpc: "2.0", id: 1, method: "components/list" });
    expect(json.result.components).toHaveLength(3);
  });
});

describe("components/info", () => {
  it("[S-HTTP-06, S-HTTP-22] describes one component, by its path with or without a route's prefix", async () => {
    await using s = await setup({ tasks });
    const [listed] = (await s.runtime.call("components/list")).result.components;
    expect(listed).toMatchObject(described);
    for (const component of ["/process_data", "process_data", "/my_worker/process_data"]) {
      expect((await s.runtime.call("components/info", { component })).result).toEqual({ info: listed });
    }
  });

  it("describes a component with a path pattern with the requested path", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.call("components/info", { component: "/core/de/a/b" })).result).toEqual({
      info: { component: "/core/de/a/b" },
    });
  });
});

describe("components/infer_schema", () => {
  it("[S-BP-04] reports the output schema of a component, if it declares one", async () => {
    await using s = await setup({ tasks });
    const infer = (component: string, input_schema: unknown = {}) => s.runtime.call("components/infer_schema", { component, input_schema });
    expect((await infer("/process_data")).result.output_schema).toMatchObject(described.output_schema);
    expect((await infer("/plain")).result).toEqual({});
    expect((await infer("/plain", "text")).error).toMatchObject({ code: -32602, data: { field: "params.input_schema" } });
    expect((await infer("/nobody")).error.code).toBe(-32001);
  });
});

describe("components/execute", () => {
  it("[S-HTTP-07, S-HTTP-23] runs the component and returns its output", async () => {
    await using s = await setup({ tasks });
    const records = [{ id: 1, value: "test" }];
    const observability = {
      trace_id: "a1b2c3d4e5f67890a1b2c3d4e5f67890",
      span_id: "1234567890abcdef",
      run_id: "run-12345",
      flow_id: "sha256:abc123",
      step_id: "process_step",
    };
    const { answer } = await s.runtime.execute(
      "/my_worker/process_data",
      { records, operation: "uppercase" },
      { id: "exec-001", observability },
    );
    expect(answer).toEqual({ jsonrpc: "2.0", id: "exec-001", result: { output: { processed: records, count: 1 } } });
  });

  it("[S-HTTP-25] passes the attempt to the handler, counted from one", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.execute("/plain", null)).answer.result.output).toEqual({ input: null, attempt: 1 });
    expect((await s.runtime.execute("/plain", [1], { attempt: 3 })).answer.result.output).toEqual({ input: [1], attempt: 3 });
  });

  it("passes on the values of a path's placeholders", async () => {
    await using s = await setup({ tasks });
    const { answer } = await s.runtime.execute("/python/core/de/a/b");
    expect(answer.result.output).toEqual({ lang: "de", rest: "a/b", component: "/python/core/de/a/b" });
  });

  it("[S9-48] list, info, a missing component, and an execution with a JSON response work together", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.call("components/list")).result.components).toHaveLength(3);
    expect((await s.runtime.call("components/info", { component: "/plain" })).result.info.component).toBe("/plain");
    const missing = await s.runtime.send({ jsonrpc: "2.0", id: "x", method: "components/info", params: { component: "/nosuch" } });
    expect([missing.status, missing.json.id, missing.json.error.code]).toEqual([200, "x", -32001]);
    expect(await s.runtime.execute("/plain", 1)).toMatchObject({ form: "json", answer: { result: { output: { input: 1 } } } });
  });

  it("[S-HTTP-23] passes the ids of the flow, run and step to the handler", async () => {
    const where = task("where", (_input: unknown, ctx) => {
      const { runId, flowId, stepId, component, attempt } = stepflowTask(ctx);
      return { place: { runId, flowId, stepId, component, attempt }, ids: ctx.ids, key: ctx.idempotencyKey };
    });
    await using s = await setup({ tasks: [where] });
    const observability = { run_id: "r1", flow_id: "f1", step_id: "s1" };
    const first = (await s.runtime.execute("/where", { a: 1 }, { id: "one", observability })).answer.result.output;
    expect(first).toMatchObject({
      place: { runId: "r1", flowId: "f1", stepId: "s1", component: "/where", attempt: 1 },
      ids: { runId: "r1", stepId: "s1", taskId: "one", grantId: "one" },
    });
    // The next attempt of the same work has the same key, but another item of the run has a different one.
    const second = (await s.runtime.execute("/where", { a: 1 }, { id: "two", attempt: 2, observability })).answer.result.output;
    const other = (await s.runtime.execute("/where", { a: 2 }, { id: "three", observability })).answer.result.output;
    expect(second.key).toBe(first.key);
    expect(other.key).not.toBe(first.key);
    expect((await s.runtime.execute("/where", { a: 1 }, { id: "four" })).answer.result.output.key).toBe("four");
  });
});

describe("requests of the real runtime, as they were recorded", () => {
  const observability = {
    trace_id: "01a1e1f6bd9570618d971bcb39178a28",
    span_id: "85efee2200000002",
    run_id: "01a1e1f6-bd95-7061-8d97-1bb82d998b90",
    flow_id: "472447dacc20f4b6b6db52b119cd6ab689a3e5f251cfdfc3138b558313434a5d",
    step_id: "s1",
  };
  const input = { message: "hi", n: 42, f: 1.5, nul: null, u: "é" };
  const execute = (id: string) => ({
    jsonrpc: "2.0",
    id,
    method: "components/execute",
    params: { component: "/echo", input, attempt: 1, observability },
  });
  const sessions = {
    "0.9.0": [
      { jsonrpc: "2.0", id: "01a1e1f6-bc1b-7ff2-ace8-3a387e868bc1", method: "initialize", params: { runtime_protocol_version: 1 } },
    ],
    "0.11.1": [
      {
        jsonrpc: "2.0",
        id: "01a1e1f6-d28d-7e91-b368-52037e01bfa0",
        method: "initialize",
        params: {
          runtimeProtocolVersion: 1,
          capabilities: { blobApiUrl: "http://127.0.0.1:17837/api/v1/blobs", blobThreshold: 1048576 },
        },
      },
    ],
  };

  it.each(Object.entries(sessions))("of %s are understood, and get responses that it can read", async (_version, [initialize]) => {
    await using s = await setup({ tasks: [task("echo", (given: unknown) => given as object)], handshake: "none" });
    expect((await s.runtime.send(initialize)).json.result).toMatchObject({ server_protocol_version: 1, serverProtocolVersion: 1 });
    expect((await s.runtime.send({ jsonrpc: "2.0", method: "initialized", params: {} })).status).toBe(202);
    const answer = await s.runtime.send(execute("01a1e1f6-bd95-7061-8d97-1bdf9dc81fb5"));
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.json).toEqual({ jsonrpc: "2.0", id: "01a1e1f6-bd95-7061-8d97-1bdf9dc81fb5", result: { output: input } });
    expect((await s.runtime.call("components/list")).result.components).toEqual([{ component: "/echo" }]);
  });
});
