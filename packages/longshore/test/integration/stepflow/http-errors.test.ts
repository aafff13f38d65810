// Stepflow over HTTP: every error, as the runtime receives it.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { LongshoreError, TerminalError } from "../../../src/core/errors.ts";
import { type Task, task } from "../../../src/core/task.ts";
import { type Any, setup } from "../../support/stepflow-runtime.ts";
import { until } from "../../support/until.ts";

const throwing = (name: string, error: () => unknown) =>
  task(name, () => {
    throw error();
  });

const tasks: Task[] = [
  task("echo", (input: unknown) => input as object),
  task("strict", ({ name }) => name, { input: z.object({ name: z.string() }) }),
  throwing("fails", () => new RangeError("Invalid input format")),
  throwing("final", () => new TerminalError("never again")),
  throwing("away", () => new LongshoreError("LONGSHORE_UNREACHABLE", "the bank does not answer")),
  throwing(
    "refused",
    () => new TypeError("fetch failed", { cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }) }),
  ),
  throwing("late", () => new DOMException("The operation was aborted due to timeout", "TimeoutError")),
  throwing("forbidden", () => new LongshoreError("LONGSHORE_UNAUTHORIZED", "not for you")),
  task("cycle", () => {
    const self: { self?: unknown } = {};
    self.self = self;
    return self;
  }),
  task("reader", async ({ id }: { id: string }, ctx) => Buffer.from(await ctx.blobs.get(id)).toString()),
];

const at = (path: string, input: unknown = {}) => ({
  method: "components/execute",
  params: { component: path, input, attempt: 1, observability: {} },
});

describe("the message", () => {
  it("[S-ERR-02] that is not JSON is a parse error, without an id", async () => {
    await using s = await setup({ tasks });
    for (const body of ["{", "", "hello", new Uint8Array([0x22, 0xff, 0x22])]) {
      const answer = await s.runtime.post(body);
      expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([400, null, -32700]);
    }
  });

  it("[S-ERR-03] that lacks a required field is an invalid request, with its id if it has one", async () => {
    await using s = await setup({ tasks });
    const answers = await Promise.all(
      [{ jsonrpc: "2.0", id: "x" }, { id: "y", method: "components/list" }, [], { jsonrpc: "2.0", id: {}, method: "m" }].map((body) =>
        s.runtime.send(body),
      ),
    );
    expect(answers.map(({ status, json }) => [status, json.id, json.error.code])).toEqual([
      [400, "x", -32600],
      [400, "y", -32600],
      [400, null, -32600],
      [400, null, -32600],
    ]);
  });

  it("[S9-44] gets 400 when it is invalid JSON or has no method, result or error", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.post("{not json")).status).toBe(400);
    expect((await s.runtime.send({ jsonrpc: "2.0", id: 1, params: {} })).status).toBe(400);
  });

  it("[S-ERR-04, S9-46] with an unknown method gets this error with its id", async () => {
    await using s = await setup({ tasks });
    for (const method of ["components/run", "constructor", "blobs/put", ""]) {
      const answer = await s.runtime.send({ jsonrpc: "2.0", id: 5, method, params: {} });
      expect(answer).toMatchObject({ status: 200, json: { id: 5, error: { code: -32601, data: { method } } } });
    }
  });

  it.each([
    [{}, "params.component is missing"],
    [{ component: 5, input: {} }, "params.component is 5"],
    [{ component: "/echo" }, "params.input is missing"],
    [{ component: "/echo", input: {}, attempt: 0 }, "params.attempt is 0"],
    [{ component: "/echo", input: {}, attempt: "1" }, 'params.attempt is "1"'],
    [{ component: "/echo", input: {}, observability: [] }, "params.observability is []"],
    [{ component: "/echo", input: {}, observability: { run_id: 5 } }, "params.observability.run_id is 5"],
  ])("[S-ERR-05] with malformed parameters names the field: %j", async (params, text) => {
    await using s = await setup({ tasks });
    const { error } = await s.runtime.call("components/execute", params);
    expect(error.code).toBe(-32602);
    expect(error.message).toContain(text);
    expect(error.data).toMatchObject({ field: expect.stringMatching(/^params\./), expected: expect.any(String) });
  });

  it("[S-ERR-05] whose parameters are a list is refused", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.send({ jsonrpc: "2.0", id: 1, method: "components/list", params: [] })).json.error.code).toBe(-32602);
  });

  it("that is a notification must have no id, and one with the name of a request is ignored", async () => {
    await using s = await setup({ tasks, handshake: "none" });
    const answer = await s.runtime.send({ jsonrpc: "2.0", id: 7, method: "initialized", params: {} });
    expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([400, 7, -32600]);
    expect(answer.json.error.message).toBe("id is 7, expected none: initialized is a notification.");
    const unasked = await s.runtime.send({ jsonrpc: "2.0", method: "components/execute", params: {} });
    expect([unasked.status, unasked.text]).toEqual([202, '""']);
    expect((await s.runtime.send({ jsonrpc: "2.0", id: 8, method: "components/list", params: {} })).json.error.code).toBe(-32002);
  });

  it("[S9-47] that responds to an unknown call gets 400", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.send({ jsonrpc: "2.0", id: "nobody", result: {} })).status).toBe(400);
    expect((await s.runtime.send({ jsonrpc: "2.0", id: "nobody", error: { code: -32000, message: "x" } })).status).toBe(400);
  });

  it("with invalid trace ids is still run", async () => {
    await using s = await setup({ tasks });
    const observability = { trace_id: "xyz", span_id: null, run_id: null };
    expect((await s.runtime.execute("/echo", 1, { observability })).answer.result).toEqual({ output: 1 });
  });
});

describe("the component", () => {
  it("[S-ERR-01] fails with a code, a message, and data with the component and the reason", async () => {
    await using s = await setup({ tasks });
    const { status, answer } = await s.runtime.execute("/fails", {}, { id: "exec-001" });
    expect(status).toBe(200);
    expect(answer).toEqual({
      jsonrpc: "2.0",
      id: "exec-001",
      error: {
        code: -32004,
        message: "Invalid input format",
        data: { component: "/fails", reason: "Invalid input format", error: "RangeError", retryable: true },
      },
    });
  });

  it("[S-ERR-08] that does not exist is reported by name, together with the existing ones", async () => {
    await using s = await setup({ tasks });
    const { error } = (await s.runtime.execute("/nosuch")).answer;
    expect(error).toMatchObject({ code: -32001, data: { component: "/nosuch" } });
    expect(error.message).toContain("/echo, /strict");
  });

  it("[S-ERR-10, S-HTTP-24] is not called with an input that does not fit its schema", async () => {
    const called: unknown[] = [];
    const note = ({ name }: { name: string }) => {
      called.push(name);
      return name;
    };
    const strict = task("strict", note, { input: z.object({ name: z.string() }) });
    await using s = await setup({ tasks: [strict] });
    const { error } = (await s.runtime.execute("/strict", { name: 5 })).answer;
    expect(error).toMatchObject({ code: -32003, data: { component: "/strict", retryable: false } });
    expect(error.message).toContain("name: ");
    expect((await s.runtime.execute("/strict", { name: "Ada" })).answer.result).toEqual({ output: "Ada" });
    expect(called).toEqual(["Ada"]);
  });

  it("[S-ERR-11] that throws has failed, permanently or transiently", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.execute("/fails")).answer.error).toMatchObject({ code: -32004, data: { retryable: true } });
    expect((await s.runtime.execute("/final")).answer.error).toMatchObject({ code: -32004, data: { retryable: false } });
  });

  it("[S-ERR-12] that lacks a resource reports this, with our error or with Node's", async () => {
    await using s = await setup({ tasks });
    expect((await s.runtime.execute("/away")).answer.error).toMatchObject({ code: -32005, message: "the bank does not answer" });
    expect((await s.runtime.execute("/refused")).answer.error.code).toBe(-32005);
  });

  it("[S-ERR-13] that takes too long has timed out, by its task's timeout or by its own", async () => {
    const slow = task(
      "slow",
      (_input: unknown, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
      { timeout: "5s" },
    );
    await using s = await setup({ tasks: [...tasks, slow] });
    expect((await s.runtime.execute("/late")).answer.error.code).toBe(-32006);
    const execution = s.runtime.execute("/slow");
    await until(() => s.worker.status().running.length === 1);
    await s.clock.advance(5_000);
    expect((await execution).answer.error).toMatchObject({ code: -32006, message: 'Task "slow" timed out after 5.0 s.' });
  });

  it("[S-ERR-14] that requested a missing blob reports this", async () => {
    await using s = await setup({ tasks });
    // With the guide's code, and with the code that runtimes really send.
    for (const code of [-32008, -32011]) {
      const respond = () => ({ error: { code, message: "Blob not found" } });
      const { form, answer } = await s.runtime.execute("/reader", { id: "0".repeat(64) }, { respond });
      expect([form, answer.error.code]).toEqual(["sse", -32008]);
    }
  });

  it("[S-ERR-06] gets an internal error when its result is not JSON or its worker has a fault", async () => {
    const broken = { ...task("broken", () => 1) };
    Object.defineProperty(broken, "description", {
      get: () => {
        throw new Error("nobody expected this");
      },
    });
    await using s = await setup({ tasks: [...tasks, broken] });
    expect((await s.runtime.execute("/cycle")).answer.error).toMatchObject({ code: -32603, message: expect.stringContaining("not JSON") });
    expect((await s.runtime.call("components/list")).error).toMatchObject({
      code: -32603,
      message: "The worker failed: nobody expected this",
    });
    expect((await s.runtime.execute("/echo", 1)).answer.result).toEqual({ output: 1 });
  });

  it("[S-ERR-07] whose worker stops before it ends gets the general error", async () => {
    const stuck = task(
      "stuck",
      (_input: unknown, ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason))),
    );
    await using s = await setup({ tasks: [stuck] });
    const execution = s.runtime.execute("/stuck");
    await until(() => s.worker.status().running.length === 1);
    void s.worker.stop({ force: true });
    expect((await execution).answer.error).toMatchObject({
      code: -32000,
      message: "The worker is shutting down.",
      data: { retryable: true },
    });
  });

  it("[S-ERR-15] has a separate code for permissions, and understands the codes of the runtime", async () => {
    const asks = task("asks", async (_input: unknown, ctx) =>
      ctx.blobs.get("0".repeat(64)).then(
        () => "kept",
        (error: LongshoreError) => error.code,
      ),
    );
    await using s = await setup({ tasks: [...tasks, asks] });
    expect((await s.runtime.execute("/forbidden")).answer.error.code).toBe(-32007);
    const told = async (code: number, message = "no") =>
      (await s.runtime.execute("/asks", {}, { respond: () => ({ error: { code, message } }) })).answer.result.output;
    expect(await told(-32007)).toBe("LONGSHORE_UNAUTHORIZED");
    expect(await told(-32009)).toBe("LONGSHORE_BAD_INPUT");
    expect(await told(-32010)).toBe("LONGSHORE_LEASE_LOST");
    // The runtime uses these two codes the other way round than its documents. The text decides, when possible.
    expect(await told(-32011)).toBe("LONGSHORE_NOT_FOUND");
    expect(await told(-32012)).toBe("LONGSHORE_BAD_INPUT");
    expect(await told(-32011, "Invalid blob id")).toBe("LONGSHORE_BAD_INPUT");
    expect(await told(-32012, "Blob not found")).toBe("LONGSHORE_NOT_FOUND");
    expect(await told(-32000)).toBe("LONGSHORE_UNREACHABLE");
  });
});

it("[S-HTTP-08] always fails with a complete JSON-RPC error with the request's id and its own code, for any status", async () => {
  await using s = await setup({ tasks });
  const requests: [body: Any, code: number][] = [
    [at("/fails"), -32004],
    [at("/nosuch"), -32001],
    [at("/strict"), -32003],
    [at("/away"), -32005],
    [at("/late"), -32006],
    [at("/cycle"), -32603],
    [{ method: "nonsense" }, -32601],
    [{ method: "components/info", params: {} }, -32602],
    [{ method: "components/list", params: 5 }, -32602],
    [{ params: {} }, -32600],
  ];
  for (const [id, [body, code]] of requests.entries()) {
    const { json } = await s.runtime.send({ jsonrpc: "2.0", id, ...body });
    expect(json).toEqual({
      jsonrpc: "2.0",
      id,
      error: { code, message: expect.stringMatching(/./), ...("data" in json.error ? { data: expect.anything() } : {}) },
    });
  }
});

describe("the later dialect", () => {
  it("has its own codes, by which the runtime decides about retries", async () => {
    await using s = await setup({ tasks, handshake: "B" });
    const code = async (path: string, input: unknown = {}) => (await s.runtime.execute(path, input)).answer.error.code;
    expect(await code("/nosuch")).toBe(-32001);
    expect(await code("/strict")).toBe(-32003);
    // Retried when the flow requests it.
    expect(await code("/fails")).toBe(-32100);
    expect(await code("/away")).toBe(-32102);
    expect(await code("/late")).toBe(-32102);
    // Never retried.
    expect(await code("/final")).toBe(-32090);
    expect(await code("/cycle")).toBe(-32603);
    expect((await s.runtime.call("nonsense")).error.code).toBe(-32601);
  });
});
