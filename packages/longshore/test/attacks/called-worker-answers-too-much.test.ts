// A worker that the server calls over HTTP sends responses that are small on the network and large in memory. They were not counted before
// they were read: 64 MiB for each of a hundred calls at the same time, with any number of values.

import { describe, expect, it, onTestFinished } from "vitest";
import { WorkerClient } from "../../src/protocols/stepflow/server/http/runtime/client.ts";
import { pluginWorld } from "../support/stepflow-plugins.ts";
import { type Received, scriptedWorker } from "../support/stepflow-scripted-worker.ts";

/** 600 KB on the network. */
const manyValues = `[${"[],".repeat(200_000)}0]`;

async function hostile(answer: (received: Received) => void) {
  const script = (received: Received) => {
    if (received.message.method !== "components/execute") return false;
    answer(received);
    return true;
  };
  const worker = await scriptedWorker({ script });
  const world = await pluginWorld(`plugins: { p: { type: stepflow, url: "${worker.url}" } }\nroutes: { "/": [ { plugin: p } ] }\n`);
  return { worker, world };
}

const answerText = (id: unknown, output: string) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"output":${output}}}`;

describe("a called worker", () => {
  it("that responds with very many values fails its step, and the values are not built", async () => {
    const { world } = await hostile(({ message, send }) => send(200, answerText(message.id, manyValues)));
    expect(await world.run("/x")).toMatchObject({
      error: { code: "WORKER_ERROR", message: expect.stringContaining("more than 131072 values") },
    });
  });

  it("that streams them as an event also fails its step", async () => {
    const { world } = await hostile(({ message, stream, response }) => {
      stream();
      response.write(`data: ${answerText(message.id, manyValues)}\n\n`);
    });
    expect(await world.run("/x")).toMatchObject({
      error: { code: "WORKER_ERROR", message: expect.stringContaining("more than 131072 values") },
    });
  });

  it("that announces its response without an end is not read on", async () => {
    const { worker } = await hostile(({ response }) => {
      const announce = () => {
        if (response.destroyed) return;
        response.writeProcessing();
        setImmediate(announce);
      };
      announce();
    });
    const client = await WorkerClient.open({ url: new URL(worker.url), makeId: () => "1" });
    onTestFinished(() => client.close());
    const body = '{"jsonrpc":"2.0","id":"1","method":"components/execute","params":{}}';
    const answer = client.execute(body, "h", { signal: new AbortController().signal });
    await expect(answer).rejects.toThrow("announced a response 8 times");
  });

  it("cannot use more memory for its responses than the share of one worker", async () => {
    const body = "x".repeat(1_000);
    const { worker } = await hostile(({ response }) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write(body);
    });
    const client = await WorkerClient.open({ url: new URL(worker.url), makeId: () => "1", receivingBytes: 2_500 });
    onTestFinished(() => client.close());
    const over = new AbortController();
    const call = () => client.execute('{"jsonrpc":"2.0","id":"1","method":"components/execute","params":{}}', "h", { signal: over.signal });
    const calls = [call(), call(), call()].map((answer) => answer.catch((error: Error) => error.message));
    expect(await Promise.race(calls)).toMatch(/2500 bytes of its answers/);
    over.abort(new Error("over"));
    expect((await Promise.all(calls)).filter((message) => message === "over")).toHaveLength(2);
    expect(client.receivedBytes).toBe(0);
  });
});
