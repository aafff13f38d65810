// Steps that read the parts of other steps while these run, on a server with workers in its own process.

import { describe, expect, it } from "vitest";
import { startAdminServer } from "../../test/support/admin.ts";
import { deferred } from "../../test/support/until.ts";
import type { Context } from "../core/context.ts";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import { work } from "../work.ts";

async function setup(produce: (ctx: Context) => Promise<unknown>, consume: (ctx: Context) => Promise<unknown>) {
  const server = await startAdminServer();
  const producer = task("produce", (_input: null, ctx) => produce(ctx), { retry: { limit: 1, backoff: { kind: "fixed", delayMs: 0 } } });
  const consumer = task("consume", (_input: null, ctx) => consume(ctx));
  const worker = await work({ tasks: [producer, consumer], on: server.server, slots: 4, clock: server.clock, logger: false });
  const { id } = await server.server.start(
    graph("stream", (g) => {
      const first = g.step(producer, null, { id: "first" });
      return { read: g.step(consumer, null, { id: "second", after: [first], startWhen: "first-part" }) };
    }),
    null,
  );
  return {
    ...server,
    id,
    ended: async () => {
      const result = await server.server.result(id);
      await worker.stop();
      return result;
    },
  };
}

async function read(ctx: Context, step = "first"): Promise<unknown[]> {
  const seen: unknown[] = [];
  for await (const { uid, value } of ctx.parts(step)) seen.push([uid, value]);
  return seen;
}

describe("a step that reads another step's parts", () => {
  it("begins with the first part, gets the others as they arrive, and ends after the source", async () => {
    const heard = deferred<void>();
    const { ended } = await setup(
      async (ctx) => {
        await ctx.emit("one");
        // It continues only when a reader has begun meanwhile.
        await heard.promise;
        await ctx.emit("two", { uid: "second" });
      },
      async (ctx) => {
        heard.resolve();
        return read(ctx);
      },
    );
    expect((await ended()).output).toEqual({
      read: [
        ["1", "one"],
        ["second", "two"],
      ],
    });
  });

  it("begins at the end of a source without parts, and reads nothing", async () => {
    const { ended } = await setup(async () => null, read);
    expect((await ended()).output).toEqual({ read: [] });
  });

  it("gets each part once although its source fails and is tried again", async () => {
    const { ended } = await setup(async (ctx) => {
      await ctx.emit(1);
      if (ctx.attempt === 1) throw new Error("once more");
      await ctx.emit(2);
    }, read);
    expect((await ended()).output).toEqual({
      read: [
        ["1", 1],
        ["2", 2],
      ],
    });
  });

  it("fails when its source fails", async () => {
    const { ended } = await setup(async (ctx) => {
      await ctx.emit(1);
      throw new Error("broken");
    }, read);
    expect(await ended()).toMatchObject({ state: "failed" });
  });

  it("gets an error for a step that its run does not have", async () => {
    const { ended } = await setup(
      async (ctx) => ctx.emit(1),
      (ctx) => read(ctx, "nobody"),
    );
    expect((await ended()).error).toContain('There is no step "nobody" in this run');
  });
});

describe("the parts of a step over HTTP", () => {
  it("are listed in pages, with the state of the step", async () => {
    const { api, id, ended } = await setup(async (ctx) => {
      for (const value of ["a", "b", "c"]) await ctx.emit({ value });
    }, read);
    await ended();
    const first = (await api("GET", `/runs/${id}/steps/first/parts?limit=2`)).body;
    expect(first).toMatchObject({ items: [{ uid: "1", sequence: 1, value: { value: "a" } }, { uid: "2" }], next: "2", ended: "done" });
    const second = (await api("GET", `/runs/${id}/steps/first/parts?after=${first.next}`)).body;
    expect(second).toMatchObject({ items: [{ uid: "3" }], next: "3" });
    expect((await api("GET", `/runs/${id}/steps/first/parts?after=3`)).body).toEqual({ items: [], next: null, ended: "done" });
  });

  it("can be waited for", async () => {
    const go = deferred<void>();
    const { api, id, ended } = await setup(async (ctx) => {
      await go.promise;
      await ctx.emit("late");
    }, read);
    expect((await api("GET", `/runs/${id}/steps/first/parts`)).body).toEqual({ items: [], next: "0", ended: null });
    const waiting = api("GET", `/runs/${id}/steps/first/parts?waitMs=20000`);
    go.resolve();
    expect((await waiting).body.items).toMatchObject([{ value: "late" }]);
    await ended();
  });

  it("are 404 for an unknown run or step; a wait that is too long is refused", async () => {
    const { api, id, ended } = await setup(async () => null, read);
    await ended();
    expect((await api("GET", `/runs/nobody/steps/first/parts`)).status).toBe(404);
    const { status, body } = await api("GET", `/runs/${id}/steps/nobody/parts`);
    expect([status, body.error.field]).toEqual([404, "step"]);
    expect((await api("GET", `/runs/${id}/steps/first/parts?waitMs=60000`)).status).toBe(400);
  });
});
