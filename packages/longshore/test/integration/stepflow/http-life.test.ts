// Stepflow over HTTP: more work than slots, callers that disconnect, and the end of a worker.

import type { ClientRequest } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LongshoreError } from "../../../src/core/errors.ts";
import { task } from "../../../src/core/task.ts";
import type { WorkHandle } from "../../../src/work.ts";
import { Runtime, setup } from "../../support/stepflow-runtime.ts";
import { deferred, until } from "../../support/until.ts";

/** Resolves when this many requests wait because all slots are used. */
function waiting(worker: WorkHandle) {
  let count = 0;
  worker.on("slotsFull", () => void count++);
  return (requests: number) => until(() => count === requests);
}

/** A task that ends when the test ends it, and records its calls and why it was stopped. */
function gate() {
  const begun: unknown[] = [];
  const stopped: string[] = [];
  const opened = deferred<void>();
  const handler = async (input: unknown, ctx: { readonly signal: AbortSignal }) => {
    begun.push(input);
    ctx.signal.addEventListener("abort", () => stopped.push((ctx.signal.reason as LongshoreError).code));
    await opened.promise;
    return { input } as object;
  };
  return { begun, stopped, open: () => opened.resolve(), gated: task("gated", handler) };
}

describe("more requests than slots", () => {
  it("wait in order until a slot is free", async () => {
    const { gated, begun, open } = gate();
    await using s = await setup({ tasks: [gated], work: { slots: 1 } });
    const wait = waiting(s.worker);
    const first = s.runtime.execute("/gated", 1);
    await until(() => begun.length === 1);
    const second = s.runtime.execute("/gated", 2);
    await wait(1);
    const third = s.runtime.execute("/gated", 3);
    await wait(2);
    // Requests that need no slot get a response meanwhile.
    expect((await s.runtime.call("components/list")).result.components).toHaveLength(1);
    expect(begun).toEqual([1]);
    open();
    const answers = await Promise.all([first, second, third]);
    expect(answers.map(({ answer }) => answer.result.output)).toEqual([{ input: 1 }, { input: 2 }, { input: 3 }]);
    expect(begun).toEqual([1, 2, 3]);
  });

  it("are refused when this takes too long, with an error that allows a retry", async () => {
    const { gated, begun, open } = gate();
    await using s = await setup({ tasks: [gated], work: { slots: 1 }, http: { slotWait: "5s" } });
    const wait = waiting(s.worker);
    const first = s.runtime.execute("/gated", 1);
    await until(() => begun.length === 1);
    const second = s.runtime.execute("/gated", 2);
    await wait(1);
    await s.clock.advance(5_000);
    expect(await second).toMatchObject({
      status: 503,
      headers: { "retry-after": "1" },
      answer: {
        error: { code: -32000, message: "All 1 slots of the worker are taken, and none became free in time.", data: { retryable: true } },
      },
    });
    open();
    expect((await first).answer.result.output).toEqual({ input: 1 });
    expect(s.worker.status().slots).toEqual({ total: 1, free: 1 });
  });

  it("are refused in the later dialect with a code that allows a retry", async () => {
    const { gated, begun, open } = gate();
    await using s = await setup({ tasks: [gated], handshake: "B", work: { slots: 1 }, http: { slotWait: 0 } });
    const wait = waiting(s.worker);
    const first = s.runtime.execute("/gated", 1);
    await until(() => begun.length === 1);
    const second = s.runtime.execute("/gated", 2);
    await wait(1);
    await s.clock.advance(0);
    expect((await second).answer.error.code).toBe(-32102);
    open();
    await first;
  });

  it("leave the queue when their caller disconnects", async () => {
    const { gated, begun, open } = gate();
    await using s = await setup({ tasks: [gated], work: { slots: 1 } });
    const wait = waiting(s.worker);
    const first = s.runtime.execute("/gated", 1);
    await until(() => begun.length === 1);
    let request: ClientRequest | undefined;
    const second = s.runtime.execute("/gated", 2, { sent: (sent) => (request = sent) });
    await wait(1);
    request?.destroy();
    await expect(second).rejects.toThrow();
    const third = s.runtime.execute("/gated", 3);
    await wait(2);
    open();
    await Promise.all([first, third]);
    expect(begun).toEqual([1, 3]);
  });
});

describe("a caller that disconnects", () => {
  it("stops the handler, because no caller waits for its result", async () => {
    const { gated, begun, stopped, open } = gate();
    await using s = await setup({ tasks: [gated] });
    let request: ClientRequest | undefined;
    const execution = s.runtime.execute("/gated", 1, { sent: (sent) => (request = sent) });
    await until(() => begun.length === 1);
    request?.destroy();
    await expect(execution).rejects.toThrow();
    await until(() => stopped.length === 1);
    expect(stopped).toEqual(["LONGSHORE_CANCELLED"]);
    open();
    await until(() => s.worker.status().slots.free === s.worker.status().slots.total);
  });

  it("on a stream, also ends the calls for which a handler waits", async () => {
    const outcomes: string[] = [];
    const asking = task("asking", async (_input: unknown, ctx) => {
      await ctx.blobs.put("x").catch((error: LongshoreError) => outcomes.push(error.code));
      return ctx.blobs.put("y").catch((error: LongshoreError) => outcomes.push(error.code));
    });
    await using s = await setup({ tasks: [asking] });
    let request: ClientRequest | undefined;
    const asked = deferred<void>();
    const respond = () => {
      asked.resolve();
      return undefined;
    };
    const execution = s.runtime.execute("/asking", {}, { respond, sent: (sent) => (request = sent) });
    await asked.promise;
    request?.destroy();
    await expect(execution).rejects.toThrow();
    await until(() => outcomes.length === 2);
    expect(outcomes).toEqual(["LONGSHORE_CANCELLED", "LONGSHORE_CANCELLED"]);
  });
});

describe("a worker that stops", () => {
  it("[S-BP-05] finishes running work with its calls, refuses new work, and closes its connections", async () => {
    const { gated, begun, open } = gate();
    const calling = task("calling", async (_input: unknown, ctx) => {
      begun.push("calling");
      await blocked.promise;
      return ctx.blobs.put("late");
    });
    const blocked = deferred<void>();
    await using s = await setup({ tasks: [gated, calling], work: { slots: 2 } });
    const wait = waiting(s.worker);
    const respond = () => ({ result: { blob_id: "b" } });
    const executions = [s.runtime.execute("/gated", 1), s.runtime.execute("/calling", {}, { respond })];
    await until(() => begun.length === 2);
    const late = s.runtime.execute("/gated", 2);
    await wait(1);
    const stopped = s.worker.stop();
    expect((await late).answer.error).toMatchObject({ code: -32000, message: "The worker is stopping and takes no more work." });
    const refused = await s.runtime.execute("/gated", 3);
    expect(refused).toMatchObject({ status: 503, headers: { connection: "close" } });
    expect(await s.runtime.get("/health")).toMatchObject({ status: 503, json: { status: "draining" } });
    blocked.resolve();
    open();
    expect((await Promise.all(executions)).map(({ answer }) => answer.result.output)).toEqual([{ input: 1 }, "b"]);
    await stopped;
    await expect(new Runtime(s.runtime.url).get("/health")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("sends a large response completely, but disconnects a reader that does not read it", async () => {
    const large = task("large", () => "x".repeat(20_000_000));
    await using s = await setup({ tasks: [large] });
    const [whole] = await Promise.all([
      s.runtime.execute("/large"),
      until(() => s.worker.status().running.length === 1).then(() => s.worker.stop()),
    ]);
    expect(whole.answer.result.output).toHaveLength(20_000_000);
    await using other = await setup({ tasks: [large] });
    const ended: string[] = [];
    other.worker.on("taskEnded", ({ kind }) => void ended.push(kind));
    const deaf = connect(Number(new URL(other.runtime.url).port), "127.0.0.1").pause();
    onTestFinished(() => void deaf.destroy());
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "components/execute", params: { component: "/large", input: {} } });
    deaf.write(
      `POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\naccept: */*\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => other.worker.status().running.length === 1);
    // The time begins with the response, but no event shows this.
    while (ended.length === 0) await other.clock.advance(60_000);
    expect(ended).toEqual(["lost"]);
  });

  it("responds to every caller, also when a handler does not end", async () => {
    const deaf = task("deaf", () => new Promise(() => {}));
    await using s = await setup({ tasks: [deaf] });
    const execution = s.runtime.execute("/deaf");
    await until(() => s.worker.status().running.length === 1);
    const stopped = s.worker.stop({ force: true });
    await s.clock.armed(5_000);
    await s.clock.advance(5_000);
    expect((await execution).answer.error).toMatchObject({ code: -32000 });
    await s.clock.advance(5_000);
    await stopped;
  });
});
