// The server half over HTTP with workers that send literal bytes.

import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { dialectB, startCalled as setup } from "../../support/stepflow-called.ts";
import { pluginWorld } from "../../support/stepflow-plugins.ts";
import { scriptedWorker } from "../../support/stepflow-scripted-worker.ts";

describe("the handshake", () => {
  it("[S-HTTP-03, S-HTTP-04] is sent first, then the list of components, then calls", async () => {
    const { worker, world } = await setup();
    await world.run("/echo", { a: 1 });
    expect(worker.methods).toEqual(["initialize", "initialized", "components/list", "components/execute"]);
    expect(worker.received[1]?.message).toEqual({ jsonrpc: "2.0", method: "initialized", params: {} });
  });

  it("[S-OBS-07] has the version in both dialects and the address of blobs, and belongs to no run", async () => {
    const { worker, world } = await setup();
    await world.run("/echo");
    expect(worker.received[0]?.message.params).toEqual({
      runtime_protocol_version: 1,
      runtimeProtocolVersion: 1,
      capabilities: { blobApiUrl: "http://127.0.0.1:4500/api/v1/blobs", blobThreshold: 1_048_576 },
    });
    expect(worker.received[2]?.message).toMatchObject({ method: "components/list", params: {} });
    expect(worker.received[2]?.message.params).toEqual({});
    expect(worker.received[0]?.headers).toMatchObject({
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    });
  });

  it("[S-HTTP-19] fails with a worker of another version, which is disconnected, never called, and reported once", async () => {
    const open = new Set<Socket>();
    const openAtInitialize: number[] = [];
    const { worker, world } = await setup({
      initialize: { server_protocol_version: 2 },
      script: ({ response }) => {
        const socket = response.socket as Socket;
        openAtInitialize.push(open.size);
        open.add(socket);
        socket.once("close", () => open.delete(socket));
        return false;
      },
    });
    await world.post("t", "/echo", {});
    const line = await world.logged(/cannot be called/);
    expect(line).toContain("it speaks version 2 of the protocol, expected 1");
    await world.logged(/^debug .*cannot be called/);
    expect(new Set(worker.methods)).toEqual(new Set(["initialize"]));
    // The first connection is closed before the next attempt.
    expect(openAtInitialize.slice(0, 2)).toEqual([0, 0]);
    expect(await world.engine.board.task("t")).toMatchObject({ state: "queued", attempt: 0 });
    expect(world.lines.filter((one) => one.startsWith("error"))).toHaveLength(1);
  });

  it("is repeated together with the call when the worker has forgotten it", async () => {
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

  it("that a worker forgets again and again fails the step", async () => {
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

  it("[S-HTTP-25] is repeated after a connection broke, because the worker may be another process, and the next attempt is the second", async () => {
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

  it("waits for a worker that is not started yet, while steps wait in their lane", async () => {
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
  it("[S-HTTP-23, S-HTTP-25] has component, input, attempt and context", async () => {
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

  it("names a component as the worker listed it, also with the route's prefix", async () => {
    const components = [{ component: "/my_worker/process_data", description: "d", input_schema: { type: "object" } }, { component: "udf" }];
    const { worker, world } = await setup({ components });
    await world.run("/process_data");
    await world.run("/udf");
    await world.run("/unlisted");
    const called = worker.received.filter(({ message }) => message.method === "components/execute");
    expect(called.map(({ message }) => message.params.component)).toEqual(["/my_worker/process_data", "udf", "/unlisted"]);
  });

  it("stores the worker's components, for routing and for people", async () => {
    const { world } = await setup({
      components: [{ component: "/udf", description: null, input_schema: { type: "object" } }, { nothing: 1 }],
    });
    await world.run("/udf");
    const kept = await world.engine.documents.document("stepflow-components", "stepflow-http:p");
    expect(JSON.parse(kept?.body ?? "")).toEqual({ components: [{ id: "/udf", path: "/udf", inputSchema: { type: "object" } }] });
  });

  it("[S-HTTP-32] may also be answered by an event", async () => {
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

  it("ends with its last event, also when the worker leaves the stream open", async () => {
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

  it("reads events in any valid form and any division into pieces", async () => {
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

  it("runs in parallel with others up to the plugin's limit", async () => {
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

  it("is dropped and given back when the server closes before it ends", async () => {
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

describe("large values", () => {
  it("are sent as references to a worker that supports them, and are returned completely", async () => {
    const config = "maxConcurrency: 1";
    const large = "x".repeat(2_000_000);
    const { worker, world } = await setup({ initialize: dialectB }, { more: config });
    expect(await world.run("/echo", { large, small: 1 })).toEqual({ output: { large, small: 1 } });
    const { input } = worker.received.at(-1)?.message.params ?? {};
    expect(input).toEqual({ large: { $blob: expect.stringMatching(/^[0-9a-f]{64}$/), blobType: "data", size: 2_000_002 }, small: 1 });
  });

  it("are sent unchanged to a worker that does not support references", async () => {
    const large = "x".repeat(2_000_000);
    const { worker, world } = await setup();
    await world.run("/echo", { large });
    expect(worker.received.at(-1)?.message.params.input.large.length).toBe(2_000_000);
  });
});
