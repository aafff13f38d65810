// Workers that send garbage, nothing or too much, or that die: the outcome of the step, and that the next step is not affected.

import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { pluginWorld } from "../../support/stepflow-plugins.ts";
import { type Received, scriptedWorker } from "../../support/stepflow-scripted-worker.ts";

/** The test answers the first call, and later calls get a correct response. */
async function setup(answer: (received: Received) => void, more = "") {
  let first = true;
  const worker = await scriptedWorker({
    script: (received) => {
      if (received.message.method !== "components/execute" || !first) return false;
      first = false;
      answer(received);
      return true;
    },
  });
  const world = await pluginWorld(
    `plugins: { p: { type: stepflow, url: "${worker.url}", ${more} } }\nroutes: { "/": [ { plugin: p } ] }\n`,
  );
  return { worker, world };
}

describe("a worker's bad response", () => {
  it.each<[string, (received: Received) => void, string, RegExp]>([
    ["a body that is not JSON", ({ send }) => send(200, "<html>"), "UNREACHABLE", /status 200 and no JSON-RPC: "<html>"/],
    ["an empty body", ({ send }) => send(200, ""), "UNREACHABLE", /no JSON-RPC: nothing/],
    ["JSON that is not JSON-RPC", ({ send }) => send(200, '{"ok":true}'), "UNREACHABLE", /no JSON-RPC/],
    [
      "a refusal as the Python SDK writes it, without id",
      ({ send }) => send(400, '{"error":{"code":-32600,"message":"Invalid request"}}'),
      "WORKER_ERROR",
      /status 400 and no JSON-RPC: .*Invalid request/,
    ],
    ["a wrong content type", ({ send }) => send(415, '{"error": "Content-Type must be application/json"}'), "WORKER_ERROR", /status 415/],
    ["a proxy's page", ({ send }) => send(502, "Bad Gateway", "text/html"), "UNREACHABLE", /status 502/],
    [
      "another request's id",
      ({ send }) => send(200, '{"jsonrpc":"2.0","id":"other","result":{"output":1}}'),
      "UNREACHABLE",
      /answered request other, expected/,
    ],
    [
      "both a result and an error",
      ({ message, send }) => send(200, JSON.stringify({ jsonrpc: "2.0", id: message.id, result: 1, error: { code: 1, message: "x" } })),
      "UNREACHABLE",
      /no JSON-RPC/,
    ],
    ["a result without output", ({ result }) => result({ outcome: 1 }), "WORKER_ERROR", /no output/],
    [
      "a request",
      ({ send }) => send(200, '{"jsonrpc":"2.0","id":1,"method":"x","params":{}}'),
      "UNREACHABLE",
      /request instead of a response/,
    ],
    ["that it is busy", ({ error }) => error(-32000, "Every slot is taken", undefined, 503), "UNREACHABLE", /Every slot is taken/],
    [
      "a stream that ends without an answer",
      ({ stream, response }) => {
        stream();
        response.end();
      },
      "UNREACHABLE",
      /ended its stream without an answer/,
    ],
    [
      "a stream of garbage that ends",
      ({ stream, response }) => {
        stream();
        response.end("data: {{{\n\ndata: 7\n\ngarbage\n\n");
      },
      "UNREACHABLE",
      /ended its stream without an answer/,
    ],
    [
      "a stream that breaks",
      ({ stream, event, response }) => {
        stream();
        event({ jsonrpc: "2.0", method: "progress", params: {} });
        response.write("data: {", () => response.socket?.resetAndDestroy());
      },
      "UNREACHABLE",
      /could not be reached/,
    ],
    ["nothing: the connection breaks", ({ cut }) => cut(), "UNREACHABLE", /could not be reached/],
    [
      "half a body",
      ({ response }) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
        response.write('{"jsonrpc":', () => response.socket?.resetAndDestroy());
      },
      "UNREACHABLE",
      /could not be reached/,
    ],
  ])("that is %s", async (_name, answer, code, message) => {
    const { world } = await setup(answer);
    expect(await world.run("/x")).toMatchObject({ error: { code, message: expect.stringMatching(message) } });
    expect(await world.run("/x", "next")).toEqual({ output: "next" });
  });

  it("with an error keeps its code and data", async () => {
    const { world } = await setup(({ error }) => error(-32004, "Component execution failed", { reason: "Invalid input format" }));
    expect(await world.run("/x")).toMatchObject({
      error: {
        code: "COMPONENT_FAILED",
        message: "Component execution failed",
        data: { reason: "Invalid input format", rpc_code: -32004 },
      },
    });
  });

  it("that is larger than the limit fails the step permanently", async () => {
    const { world } = await setup(({ response }) => {
      response.writeHead(200, { "content-type": "application/json" });
      const chunk = Buffer.alloc(4 * 1024 * 1024, 0x20);
      const more = () => {
        while (!response.destroyed) if (!response.write(chunk)) return void response.once("drain", more);
      };
      more();
    });
    expect(await world.run("/x", null, { lost: 3 })).toMatchObject({
      error: { code: "WORKER_ERROR", message: expect.stringContaining("larger than 16777216 bytes") },
      task: { attempt: 0 },
    });
    expect(await world.run("/x", "next")).toEqual({ output: "next" });
  });

  it("that is one endless event fails the step permanently", async () => {
    const { world } = await setup(({ stream, response }) => {
      stream();
      const chunk = `data: ${"x".repeat(4 * 1024 * 1024)}\n`;
      const more = () => {
        while (!response.destroyed) if (!response.write(chunk)) return void response.once("drain", more);
      };
      more();
    });
    expect(await world.run("/x")).toMatchObject({ error: { code: "WORKER_ERROR", message: expect.stringContaining("longer than") } });
  });
});

describe("a worker that does not respond", () => {
  it("is cancelled when the step's time is over", async () => {
    let dropped = () => {};
    const gone = new Promise<void>((resolve) => (dropped = resolve));
    const { world } = await setup(({ response }) => void response.on("close", () => dropped()));
    await world.engine.store.board.post([
      {
        id: "t",
        step: "t",
        lanes: [{ name: "stepflow-http:p", labels: [] }],
        input: JSON.stringify({ component: "/x", input: 1 }),
        policy: null,
        endMs: 50,
      },
    ]);
    expect(await world.engine.board.result("t")).toMatchObject({ state: "failed", fault: "timed-out" });
    await gone;
    expect(await world.run("/x", "next")).toEqual({ output: "next" });
  });

  it("after the response to its own request gets no more calls", async () => {
    const { world, worker } = await setup(({ stream, event }) => {
      stream();
      event({ jsonrpc: "2.0", id: 1, method: "blobs/put", params: { data: 1, blob_type: "data" } });
    });
    await world.post("t", "/x", 1);
    await worker.answer(1);
    await worker.close();
    expect(await world.outcome("t")).toMatchObject({ error: { code: "UNREACHABLE" } });
  });

  it("and is not HTTP is reported, and no task is claimed for it", async () => {
    const server = createServer((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const world = await pluginWorld(
      `plugins: { p: { type: stepflow, url: "http://127.0.0.1:${port}" } }\nroutes: { "/": [ { plugin: p } ] }\n`,
    );
    await world.post("t", "/x", 1);
    expect(await world.logged(/cannot be called/)).toContain("initialize could not be sent to the worker");
    expect(await world.engine.board.task("t")).toMatchObject({ state: "queued" });
  });
});
