// The server half over HTTP against workers that are scripted byte by byte.

import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/json.ts";
import { pluginWorld, type WorldOptions } from "../../support/stepflow-plugins.ts";
import { type ScriptOptions, scriptedWorker } from "../../support/stepflow-scripted-worker.ts";

async function setup(script: ScriptOptions = {}, options: WorldOptions & { more?: string } = {}) {
  const worker = await scriptedWorker(script);
  const world = await pluginWorld(
    `plugins: { p: { type: stepflow, url: "${worker.url}", ${options.more ?? ""} } }\nroutes: { "/": [ { plugin: p } ] }\n`,
    options,
  );
  return { worker, world };
}

const dialectB = { serverProtocolVersion: 1, supportsBlobRefs: true };

describe("the handshake", () => {
  it("[S-HTTP-03, S-HTTP-04] comes first, then the list of components, then calls", async () => {
    const { worker, world } = await setup();
    await world.run("/echo", { a: 1 });
    expect(worker.methods).toEqual(["initialize", "initialized", "components/list", "components/execute"]);
    expect(worker.received[1]?.message).toEqual({ jsonrpc: "2.0", method: "initialized", params: {} });
  });

  it("says its version in the words of both dialects, and where blobs are", async () => {
    const { worker, world } = await setup();
    await world.run("/echo");
    expect(worker.received[0]?.message.params).toEqual({
      runtime_protocol_version: 1,
      runtimeProtocolVersion: 1,
      capabilities: { blobApiUrl: "http://127.0.0.1:4500/api/v1/blobs", blobThreshold: 1_048_576 },
    });
    expect(worker.received[0]?.headers).toMatchObject({
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    });
  });

  it("[S-HTTP-19] is refused to a worker of another version, which is told once", async () => {
    const { worker, world } = await setup({ initialize: { server_protocol_version: 2 } });
    const line = await world.logged(/cannot be called/);
    expect(line).toContain("it speaks version 2 of the protocol, expected 1");
    await world.logged(/^debug .*cannot be called/);
    expect(worker.methods).not.toContain("initialized");
    expect(world.lines.filter((one) => one.startsWith("error"))).toHaveLength(1);
  });

  it("is made again, and the call with it, when the worker has forgotten it", async () => {
    let forgotten = true;
    const { worker, world } = await setup({
      initialize: dialectB,
      script: ({ message, error }) => {
        if (message.method !== "components/execute" || !forgotten) return false;
        forgotten = false;
        error(-32002, "Worker not initialized");
        return true;
      },
    });
    expect(await world.run("/echo", { a: 1 })).toEqual({ output: { a: 1 } });
    expect(worker.methods).toEqual([
      "initialize",
      "initialized",
      "components/list",
      "components/execute",
      "initialize",
      "initialized",
      "components/execute",
    ]);
  });

  it("that a worker forgets over and over fails the step", async () => {
    const { world } = await setup({
      initialize: dialectB,
      script: ({ message, error }) => {
        if (message.method !== "components/execute") return false;
        error(-32002, "Worker not initialized");
        return true;
      },
    });
    expect(await world.run("/echo")).toMatchObject({ error: { code: "WORKER_ERROR", message: "Worker not initialized" } });
  });

  it("is made again after a connection broke, for it may be another process by now", async () => {
    let broken = false;
    const { worker, world } = await setup({
      script: ({ message, cut }) => {
        if (message.method !== "components/execute" || broken) return false;
        broken = true;
        cut();
        return true;
      },
    });
    expect(await world.run("/echo", 1, { lost: 1 })).toEqual({ output: 1 });
    expect(worker.methods.filter((method) => method === "initialize").length).toBe(2);
    expect(
      worker.received.filter(({ message }) => message.method === "components/execute").map(({ message }) => message.params.attempt),
    ).toEqual([1, 2]);
  });

  it("waits for a worker that is not there yet, while steps wait on their lane", async () => {
    const gone = await scriptedWorker();
    await gone.close();
    const world = await pluginWorld(`plugins: { p: { type: stepflow, url: "${gone.url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`);
    await world.post("t", "/echo", { late: true });
    await world.logged(/cannot be called/);
    expect(await world.engine.board.task("t")).toMatchObject({ state: "queued", lost: 0 });
    await scriptedWorker({ port: gone.port });
    expect(await world.outcome("t")).toEqual({ output: { late: true } });
  });
});

describe("a call", () => {
  it("[S-HTTP-23, S-HTTP-25] carries component, input, attempt and context", async () => {
    const { worker, world } = await setup();
    await world.post("step one", "/echo", { message: "hi", u: "é" });
    expect(await world.outcome("step one")).toEqual({ output: { message: "hi", u: "é" } });
    expect(worker.received.at(-1)?.message).toEqual({
      jsonrpc: "2.0",
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      method: "components/execute",
      params: {
        component: "/echo",
        input: { message: "hi", u: "é" },
        attempt: 1,
        observability: { run_id: "run-of-it", flow_id: "flow-of-it", step_id: "step one" },
      },
    });
  });

  it("names a component as the worker listed it, also with the route's prefix still on", async () => {
    const components = [{ component: "/my_worker/process_data", description: "d", input_schema: { type: "object" } }, { component: "udf" }];
    const { worker, world } = await setup({ components });
    await world.run("/process_data");
    await world.run("/udf");
    await world.run("/unlisted");
    const called = worker.received.filter(({ message }) => message.method === "components/execute");
    expect(called.map(({ message }) => message.params.component)).toEqual(["/my_worker/process_data", "udf", "/unlisted"]);
  });

  it("keeps what the worker can do, for routing and for people", async () => {
    const { world } = await setup({
      components: [{ component: "/udf", description: null, input_schema: { type: "object" } }, { nothing: 1 }],
    });
    await world.run("/udf");
    const kept = await world.engine.documents.document("stepflow-components", "stepflow-http:p");
    expect(JSON.parse(kept?.body ?? "")).toEqual({ components: [{ id: "/udf", path: "/udf", inputSchema: { type: "object" } }] });
  });

  it("[S-HTTP-32] is answered by an event as well", async () => {
    const { world } = await setup({
      script: ({ message, stream, event, response }) => {
        if (message.method !== "components/execute") return false;
        stream();
        event({ jsonrpc: "2.0", method: "progress", params: {} });
        event({ jsonrpc: "2.0", id: "somebody else's", result: { output: "wrong" } });
        event({ jsonrpc: "2.0", id: message.id, result: { output: "right" } });
        response.end();
        return true;
      },
    });
    expect(await world.run("/x")).toEqual({ output: "right" });
  });

  it("is over with its last event, even when the worker leaves the stream open", async () => {
    const { world } = await setup({
      script: ({ message, stream, event }) => {
        if (message.method !== "components/execute") return false;
        stream();
        event({ jsonrpc: "2.0", id: message.id, result: { output: "done" } });
        return true;
      },
    });
    expect(await world.run("/x")).toEqual({ output: "done" });
  });

  it("reads events however they are written and cut", async () => {
    const { world } = await setup({
      script: async ({ message, stream, response }) => {
        if (message.method !== "components/execute") return false;
        stream();
        const json = JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { output: "é🚢" } }, null, 1);
        const text = `: hello\r\nevent: x\r\n\r\n${json
          .split("\n")
          .map((line) => `data: ${line}\r\n`)
          .join("")}\r\n`;
        for (const byte of Buffer.from(text)) {
          response.write(Buffer.of(byte));
          await new Promise(setImmediate);
        }
        response.end();
        return true;
      },
    });
    expect(await world.run("/x")).toEqual({ output: "é🚢" });
  });

  it("goes on beside others up to the plugin's limit", async () => {
    const open: (() => void)[] = [];
    let wake = () => {};
    const { world, worker } = await setup(
      {
        script: ({ message, result }) => {
          if (message.method !== "components/execute") return false;
          open.push(() => result({ output: message.params.input }));
          wake();
          return true;
        },
      },
      { more: "maxConcurrency: 2" },
    );
    const arrived = async (count: number) => {
      while (open.length < count) await new Promise<void>((resolve) => (wake = resolve));
    };
    for (const id of ["a", "b", "c"]) await world.post(id, "/x", id);
    await arrived(2);
    expect(worker.methods.filter((method) => method === "components/execute")).toHaveLength(2);
    open[0]?.();
    await arrived(3);
    open[1]?.();
    open[2]?.();
    expect(await Promise.all(["a", "b", "c"].map((id) => world.outcome(id)))).toEqual([{ output: "a" }, { output: "b" }, { output: "c" }]);
  });

  it("is dropped when its step is cancelled", async () => {
    let closed = () => {};
    const dropped = new Promise<void>((resolve) => (closed = resolve));
    let arrived = () => {};
    const called = new Promise<void>((resolve) => (arrived = resolve));
    const { world } = await setup({
      script: ({ message, response }) => {
        if (message.method !== "components/execute") return false;
        response.on("close", closed);
        arrived();
        return true;
      },
    });
    await world.post("t", "/x", 1);
    await called;
    await world.engine.board.cancel("t");
    await dropped;
    expect((await world.engine.board.result("t"))?.state).toBe("cancelled");
  });

  it("is dropped and given back when the server closes before it is over", async () => {
    let arrived = () => {};
    const called = new Promise<void>((resolve) => (arrived = resolve));
    const { world } = await setup({
      script: ({ message }) => {
        if (message.method !== "components/execute") return false;
        arrived();
        return true;
      },
    });
    await world.post("t", "/x", 1);
    await called;
    const queued = new Promise<void>((resolve) => void world.engine.listen({ task: (task) => task.state === "queued" && resolve() }));
    await Promise.all([queued, world.close(0)]);
  });
});

describe("calls back from a worker", () => {
  const callingBack =
    (...calls: { id: string | number; method: string; params?: Json }[]): ScriptOptions["script"] =>
    ({ message, stream, event }) => {
      if (message.method !== "components/execute") return false;
      stream("process-7");
      for (const call of calls) event({ jsonrpc: "2.0", ...call });
      return true;
    };
  const finish = (worker: Awaited<ReturnType<typeof scriptedWorker>>, output: Json) => {
    const call = worker.received.find(({ message }) => message.method === "components/execute");
    call?.event({ jsonrpc: "2.0", id: call.message.id, result: { output } });
    call?.response.end();
  };

  it("[S-HTTP-26, S-HTTP-27, S-HTTP-29] keep and fetch blobs, each answered by a request of its own to the same process", async () => {
    const { worker, world } = await setup({
      script: callingBack({ id: "b1", method: "blobs/put", params: { data: { m: "boom" }, blob_type: "data" } }),
    });
    await world.post("t", "/blob", {});
    const put = await worker.answer("b1");
    expect(put).toEqual({
      jsonrpc: "2.0",
      id: "b1",
      result: { blob_id: "sha256:f9d692b47a255132f40557b7518d1d3aa8dd5b39967736c00dde6eb5372c5f65" },
    });
    expect(worker.received.at(-1)?.headers["stepflow-instance-id"]).toBe("process-7");
    const call = worker.received.find(({ message }) => message.method === "components/execute");
    call?.event({ jsonrpc: "2.0", id: 2, method: "blobs/get", params: { blob_id: put.result.blob_id } });
    const kept = { data: { m: "boom" }, blob_type: "data" };
    expect(await worker.answer(2)).toEqual({ jsonrpc: "2.0", id: 2, result: kept });
    call?.event({ jsonrpc: "2.0", id: 3, method: "blobs/get", params: { blob_id: put.result.blob_id.slice("sha256:".length) } });
    expect(await worker.answer(3)).toEqual({ jsonrpc: "2.0", id: 3, result: kept });
    finish(worker, { matches: true });
    expect(await world.outcome("t")).toEqual({ output: { matches: true } });
  });

  it("name blobs in dialect B as its blob API does: by the bare hash", async () => {
    const put = { id: 1, method: "blobs/put", params: { data: 1, blob_type: "data" } };
    const { worker, world } = await setup({ initialize: dialectB, script: callingBack(put) });
    await world.post("t", "/blob", {});
    expect((await worker.answer(1)).result.blob_id).toMatch(/^[0-9a-f]{64}$/);
    finish(worker, null);
    expect(await world.outcome("t")).toEqual({ output: null });
  });

  it("start runs and ask about them", async () => {
    const params = { flowId: "f1", inputs: [{ x: 1 }], subflowKey: "k", wait: true, maxConcurrency: null, overrides: null };
    const { worker, world } = await setup({
      initialize: dialectB,
      script: callingBack(
        { id: 1, method: "runs/submit", params },
        { id: 2, method: "runs/get", params: { runId: "r", resultOrder: "by_completion", includeResults: true } },
      ),
    });
    await world.post("t", "/sub", {});
    expect((await worker.answer(1)).result).toEqual({ runId: "run-1", flowId: "f1", status: "completed" });
    expect((await worker.answer(2)).result.runId).toBe("r");
    expect(world.submitted).toEqual([{ flowId: "f1", inputs: [{ x: 1 }], wait: true, subflowKey: "k" }]);
    expect(world.asked).toEqual([{ runId: "r", wait: false, includeResults: true, order: "by_completion" }]);
    finish(worker, null);
    expect(await world.outcome("t")).toEqual({ output: null });
  });

  it("are refused with the code for what is wrong, and never left without an answer", async () => {
    const { worker, world } = await setup({
      script: callingBack(
        { id: 1, method: "blobs/get", params: { blob_id: "0".repeat(64) } },
        { id: 2, method: "blobs/put", params: { data: 1, blob_type: "flower" } },
        { id: 3, method: "weather/get", params: {} },
        { id: 4, method: "runs/submit", params: { flowId: "f", inputs: 1 } },
        { id: 5, method: "blobs/put", params: [1] },
      ),
    });
    await world.post("t", "/x", {});
    const codes = await Promise.all([1, 2, 3, 4, 5].map(async (id) => (await worker.answer(id)).error));
    expect(codes).toMatchObject([
      { code: -32011, message: expect.stringContaining("not found") },
      { code: -32602, data: { field: "params.blob_type", expected: '"data" or "flow"' } },
      { code: -32601, message: expect.stringContaining('There is no method "weather/get"') },
      { code: -32602, message: "params.inputs is 1, expected a list with one input for each item." },
      { code: -32602 },
    ]);
    finish(worker, 1);
    expect(await world.outcome("t")).toEqual({ output: 1 });
  });

  it("that wait for a run leave their slot to others", async () => {
    let submitted = () => {};
    const { worker, world } = await setup(
      {
        script: ({ message, stream, event }) => {
          if (message.method !== "components/execute" || message.params.component !== "/outer") return false;
          stream();
          event({ jsonrpc: "2.0", id: 1, method: "runs/submit", params: { flowId: "f", inputs: [1], wait: true } });
          return true;
        },
      },
      { more: "maxConcurrency: 1", calls: { submitRun: () => new Promise((resolve) => (submitted = () => resolve({ runId: "r" }))) } },
    );
    await world.post("outer", "/outer", {});
    expect(await world.run("/inner", "in")).toEqual({ output: "in" });
    submitted();
    await worker.answer(1);
    finish(worker, "out");
    expect(await world.outcome("outer")).toEqual({ output: "out" });
  });

  it("of two calls at once do not mix", async () => {
    const { worker, world } = await setup({
      script: ({ message, stream, event }) => {
        if (message.method !== "components/execute") return false;
        stream(`process-${message.params.input}`);
        event({
          jsonrpc: "2.0",
          id: `of ${message.params.input}`,
          method: "blobs/put",
          params: { data: message.params.input, blob_type: "data" },
        });
        return true;
      },
    });
    await Promise.all([world.post("a", "/x", "a"), world.post("b", "/x", "b")]);
    await Promise.all([worker.answer("of a"), worker.answer("of b")]);
    for (const name of ["a", "b"]) {
      const answered = worker.received.find(({ message }) => message.id === `of ${name}`);
      expect(answered?.headers["stepflow-instance-id"]).toBe(`process-${name}`);
      const call = worker.received.find(({ message }) => message.params?.input === name);
      call?.event({ jsonrpc: "2.0", id: call.message.id, result: { output: name } });
      call?.response.end();
    }
    expect(await Promise.all([world.outcome("a"), world.outcome("b")])).toEqual([{ output: "a" }, { output: "b" }]);
  });
});

describe("large values", () => {
  it("travel as references to a worker that understands them, and come back whole", async () => {
    const config = "maxConcurrency: 1";
    const large = "x".repeat(2_000_000);
    const { worker, world } = await setup({ initialize: dialectB }, { more: config });
    expect(await world.run("/echo", { large, small: 1 })).toEqual({ output: { large, small: 1 } });
    const { input } = worker.received.at(-1)?.message.params ?? {};
    expect(input).toEqual({ large: { $blob: expect.stringMatching(/^[0-9a-f]{64}$/), blobType: "data", size: 2_000_002 }, small: 1 });
  });

  it("travel as they are to a worker that does not", async () => {
    const large = "x".repeat(2_000_000);
    const { worker, world } = await setup();
    await world.run("/echo", { large });
    expect(worker.received.at(-1)?.message.params.input.large.length).toBe(2_000_000);
  });
});
