// What workers request from the server while it calls them: blobs and runs, each answered by a separate request.

import { describe, expect, it } from "vitest";
import type { Json } from "../../../src/core/json/json.ts";
import { dialectB, startCalled as setup } from "../../support/stepflow-called.ts";
import type { ScriptOptions, scriptedWorker } from "../../support/stepflow-scripted-worker.ts";

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

  it("[S-HTTP-26, S-HTTP-27, S-HTTP-29] store and fetch blobs, each answered by a separate request to the same process", async () => {
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

  it("use the plain hash of blobs in dialect B, as its blob API does", async () => {
    const put = { id: 1, method: "blobs/put", params: { data: 1, blob_type: "data" } };
    const { worker, world } = await setup({ initialize: dialectB, script: callingBack(put) });
    await world.post("t", "/blob", {});
    expect((await worker.answer(1)).result.blob_id).toMatch(/^[0-9a-f]{64}$/);
    finish(worker, null);
    expect(await world.outcome("t")).toEqual({ output: null });
  });

  it("start runs and read them", async () => {
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

  it("are refused with the code of the mistake, and always get a response", async () => {
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

  it("that wait for a run free their slot for others", async () => {
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

  it("of two simultaneous calls do not get mixed up", async () => {
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
