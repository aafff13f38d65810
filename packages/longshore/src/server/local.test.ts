// Workers in the server's own process, with all functions that a handler may use.

import { describe, expect, it } from "vitest";
import { startAdminServer, startOnSmallDisk } from "../../test/support/admin.ts";
import { deferred } from "../../test/support/until.ts";
import { eventually } from "../../test/support/workflow-graph.ts";
import type { Context } from "../core/context.ts";
import { TerminalError } from "../core/errors.ts";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import { work } from "../work.ts";

type Handler = (input: unknown, ctx: Context) => Promise<unknown>;

/** A run of one step by `handler`, with a worker in the server's process. */
async function runOf(handler: Handler, options: Parameters<typeof task>[2] = {}) {
  const server = await startAdminServer();
  const step = task("step", handler as never, options);
  const worker = await work({ tasks: [step], on: server.server, clock: server.clock, logger: false });
  const { id } = await server.server.start(
    graph("w", (g) => g.step(step, null)),
    null,
  );
  const ended = async () => {
    const result = await server.server.result(id);
    await worker.stop();
    return result;
  };
  return { ...server, id, ended };
}

describe("a handler in the server's own process", () => {
  it("writes to the log of its run", async () => {
    const { api, id, ended } = await runOf(async (_, ctx) => {
      ctx.log("first");
      ctx.log({ second: 2 }, "stderr");
      return null;
    });
    await ended();
    const { items } = (await api("GET", `/runs/${id}/logs`)).body;
    expect(items).toMatchObject([
      { step: "step", attempt: 1, stream: "stdout", data: "first\n" },
      { stream: "stderr", data: '{"second":2}\n' },
    ]);
  });

  it("stores blobs and reads them again", async () => {
    const { ended, api } = await runOf(async (_, ctx) => {
      const id = await ctx.blobs.put("some text");
      const missing = await ctx.blobs.get("0".repeat(64)).catch((error: { code: string }) => error.code);
      return { id, text: Buffer.from(await ctx.blobs.get(id)).toString(), missing };
    });
    const { output } = await ended();
    expect(output).toMatchObject({ text: "some text", missing: "LONGSHORE_NOT_FOUND" });
    expect((await api("GET", `/blobs/${(output as { id: string }).id}`)).body).toBe("some text");
  });

  it("is cancelled by its signal", async () => {
    const started = deferred<void>();
    const aborted = deferred<unknown>();
    const { id, server, clock, ended } = await runOf(async (_, ctx) => {
      ctx.signal.addEventListener("abort", () => aborted.resolve(ctx.signal.reason), { once: true });
      started.resolve();
      await aborted.promise;
    });
    await started.promise;
    expect(await server.cancel(id)).toBe(true);
    await clock.advance(3_000);
    expect(await aborted.promise).toMatchObject({ code: "LONGSHORE_CANCELLED" });
    expect((await ended()).state).toBe("cancelled");
  });

  it("is called again later when it defers, without using an attempt", async () => {
    const seen: unknown[] = [];
    const { clock, ended } = await runOf(async (_, ctx) => {
      seen.push([ctx.attempt, ctx.deferrals, ctx.deferred]);
      ctx.progress(0.5);
      if (ctx.deferrals === 2) return "done";
      return ctx.deferrals === 0 ? ctx.defer(5_000, { part: 1 }) : ctx.defer(5_000);
    });
    for (const calls of [1, 2]) {
      await eventually(async () => seen.length === calls);
      await clock.armed(5_000);
      await clock.advance(5_000);
    }
    expect((await ended()).output).toBe("done");
    expect(seen).toEqual([
      [1, 0, undefined],
      [1, 1, { part: 1 }],
      [1, 2, undefined],
    ]);
  });

  it("fails permanently with a TerminalError, for any policy", async () => {
    let calls = 0;
    const { ended } = await runOf(
      async () => {
        calls++;
        throw new TerminalError("never");
      },
      { retry: { limit: 3 } },
    );
    expect(await ended()).toMatchObject({ state: "failed", error: "step step failed: never" });
    expect(calls).toBe(1);
  });
});

it("an in-process worker that waits for work has all its slots available", async () => {
  const { server, clock, api } = await startAdminServer();
  const gate = deferred<void>();
  const wait = task("wait", (at: number) => (at === 1 ? undefined : gate.promise));
  const worker = await work({ tasks: [wait], on: server, slots: 3, clock, logger: false });
  await server.call(wait, 1);
  await eventually(async () => (await api("GET", "/queues")).body.items[0]?.pollers === 3);
  expect(worker.status().slots).toEqual({ total: 3, free: 3 });
  const called = server.call(wait, 2);
  await eventually(async () => worker.status().running.length === 1);
  expect(worker.status().slots).toEqual({ total: 3, free: 2 });
  gate.resolve();
  await called;
  await worker.stop();
});

describe("an in-process worker whose store cannot be written", () => {
  it("waits before it claims again, and continues when there is space", async () => {
    const { program, api, disk, clock } = await startOnSmallDisk();
    const echo = task("echo", async (input: number) => input);
    const result = program.call(echo, 7);
    await eventually(async () => (await api("GET", "/tasks?state=queued")).body.items.length === 1);
    disk.full = true;
    const worker = await work({ tasks: [echo], on: program, slots: 1, clock, logger: false });
    await eventually(async () => worker.status().transports[0]?.failing !== undefined);
    const refusals = disk.refusals;
    await clock.armed(500);
    for (let turn = 0; turn < 20; turn++) await api("GET", "/workers");
    expect(disk.refusals).toBe(refusals);
    disk.full = false;
    await clock.advance(500);
    expect(await result).toBe(7);
    await worker.stop();
  });
});
