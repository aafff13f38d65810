// What every client must do when it starts runs, by a workflow, by a name and by an event.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { RunStatus } from "../../src/client/client.ts";
import { RunFailed } from "../../src/client/run-failed.ts";
import { graph } from "../../src/graph.ts";
import type { Ref } from "../../src/reference.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import { all, type ClientSetups, double, doubling, failing, idle } from "./client-fixtures.ts";

export function clientStartContract({ setup, withWorker, opened }: ClientSetups): void {
  describe("starting", () => {
    it("a workflow value defines the workflow and returns a handle whose result is the output", async () => {
      const { client } = await withWorker();
      const run = await client.start(doubling, { n: 21 });
      expect(await run.result()).toEqual({ twice: 42 });
      expect(await run.status()).toMatchObject({
        id: run.id,
        workflow: "doubling",
        state: "succeeded",
        input: { n: 21 },
        output: { twice: 42 },
      });
      expect(JSON.parse(JSON.stringify(run))).toEqual({ id: run.id });
    });

    it("with a wait for the end resolves with the output, or rejects like the result", async () => {
      const { client } = await withWorker();
      expect(await client.execute(doubling, { n: 21 }, { key: "once" })).toEqual({ twice: 42 });
      expect(await client.execute("doubling", { n: 21 }, { key: "once" })).toEqual({ twice: 42 });
      expect(await all(client.runs())).toHaveLength(1);
      await expect(client.execute(failing, null)).rejects.toBeInstanceOf(RunFailed);
      await expect(client.execute("nothing", null)).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    });

    it("with a wait for the end stops waiting after a time, while the run continues", async () => {
      const { client, clock } = await setup();
      const late = expect(client.execute(idle, 1, { timeout: "10s" })).rejects.toMatchObject({
        code: "LONGSHORE_DEADLINE",
        message: expect.stringMatching(/^The run of idle has not ended within /),
      });
      while ((await all(client.runs())).length === 0);
      await clock.advance(10_000);
      await late;
      expect(await all(client.runs())).toMatchObject([{ state: "running" }]);
    });

    it("a name starts the newest version, and an unknown name is refused", async () => {
      const { client } = await withWorker();
      expect(await client.define(doubling)).toMatchObject({ name: "doubling", version: 1, dialect: "code" });
      const run = await client.start<{ twice: number }>("doubling", { n: 1 });
      expect((await run.result()).twice).toBe(2);
      await expect(client.start("nothing", null)).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND", detail: { field: "workflow" } });
    });

    it("defines the workflows that a workflow runs", async () => {
      const { client } = await withWorker();
      const outer = graph("outer", (g, n: Ref<number>) => g.run(doubling, { n }));
      expect(await (await client.start(outer, 4)).result()).toEqual({ twice: 8 });
    });

    it("refuses an input that does not fit the schema of the workflow, and starts nothing", async () => {
      const { client } = await setup();
      const order = graph("order", (g, input) => g.step(double, input.n), { input: z.object({ n: z.number().max(9) }) });
      const unfit = {
        code: "LONGSHORE_BAD_INPUT",
        detail: { field: "n" },
        message: /^The input of workflow order does not fit its schema: n/,
      };
      await expect(client.start(order, { n: 10 })).rejects.toMatchObject(messaged(unfit));
      await client.define(order);
      await expect(client.start("order", { n: 10 })).rejects.toMatchObject(messaged(unfit));
      await expect(client.start("order", {})).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "input" } });
      expect(await all(client.runs())).toEqual([]);
    });

    it("checks a durable function's input, and the function gets the defaults of its schema", async () => {
      const { client, on, clock } = await setup();
      const greeting = workflow("greeting", async (_w, input) => `${input.word}, ${input.name}!`, {
        input: z.object({ name: z.string().min(1), word: z.string().default("Hello") }),
      });
      const worker = await work({ workflows: [greeting], on, clock, logger: false, signals: false });
      opened.push({ close: () => worker.stop({ force: true }) });
      await expect(client.start(greeting, { name: "" })).rejects.toMatchObject({
        code: "LONGSHORE_BAD_INPUT",
        detail: { field: "name" },
      });
      expect(await (await client.start(greeting, { name: "Ada" })).result()).toBe("Hello, Ada!");
      await expect(client.start("greeting", { name: 7 })).rejects.toMatchObject({
        code: "LONGSHORE_BAD_INPUT",
        detail: { field: "name" },
      });
      expect(await all(client.runs())).toHaveLength(1);
    });

    it("with a key twice returns the first run, and refuses another input with the name of that run", async () => {
      const { client } = await setup();
      const start = (input: unknown) => client.start(idle, input, { key: "k" });
      const first = await start({ a: 1, b: [2] });
      expect((await start({ b: [2], a: 1 })).id).toBe(first.id);
      await expect(start({ a: 2 })).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT", detail: { field: "key", run: first.id } });
      expect(await all(client.runs())).toHaveLength(1);
    });

    it("without a key twice starts two runs", async () => {
      const { client } = await setup();
      const [one, other] = [await client.start(idle, 1), await client.start(idle, 1)];
      expect(one.id).not.toBe(other.id);
    });

    it("with a delay and a priority makes a run that sleeps", async () => {
      const { client, clock } = await withWorker();
      const run = await client.start(doubling, { n: 1 }, { delay: "5s", priority: 7 });
      expect(await run.status()).toMatchObject({ state: "running", startAt: clock.now() + 5_000, priority: 7 });
      const result = run.result();
      await clock.advance(5_000);
      expect(await result).toEqual({ twice: 2 });
      expect((await run.status()).startAt).toBeNull();
    });

    it("sends values as JSON: dates as texts, maps as objects, bytes as base64", async () => {
      const { client } = await setup();
      const value = { at: new Date(0), map: new Map([["a", 1]]), bytes: new Uint8Array([1, 2]), left: undefined };
      const run = await client.start(idle, value);
      expect((await run.status()).input).toEqual({ at: "1970-01-01T00:00:00.000Z", map: { a: 1 }, bytes: "AQI=" });
      await expect(client.start(idle, { big: 1n })).rejects.toThrow(/big is a bigint/);
    });

    it("rejects with the reason of a signal that has aborted", async () => {
      const { client } = await setup();
      await expect(client.start(idle, 1, { signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
    });
  });

  describe("a workflow with a start limit", () => {
    const hold = graph("hold", (g, _input: Ref<{ of: string }>) => g.signal("go"), { limit: { key: "of" }, on: { event: "held" } });

    it("shows which run another one waits for, also a run of an event, and begins it in its turn", async () => {
      const { client } = await setup();
      await client.define(hold);
      const first = await client.start(hold, { of: "ada" });
      const { runs } = await client.emit("held", { of: "ada" });
      const second = client.run(runs[0]?.id ?? "");
      expect((await second.status()).waiting).toEqual({
        ...{ reason: "turn", run: first.id },
        text: `waits for run ${first.id}: one run of hold at a time for of ada`,
      });
      await second.signal("go", 2);
      await first.signal("go", 1);
      expect([await first.result(), await second.result()]).toEqual([1, 2]);
    });

    it("without room and with skip returns the open run", async () => {
      const { client } = await setup();
      const skipping = graph("skipping", (g, _input: Ref<unknown>) => g.signal("go"), { limit: { overlap: "skip" } });
      const first = await client.start(skipping, 1);
      expect((await client.start(skipping, 2)).id).toBe(first.id);
    });
  });

  describe("an event", () => {
    const shipping = workflow("shipping", async (_w, order: { id: number; to: string }) => `ship ${order.id}`, {
      on: { event: "order.created", match: { to: ["DE", "AT"] } },
    });
    const mailing = workflow("mailing", async (_w, order: { id: number }) => `mail ${order.id}`, {
      on: [{ event: "order.created" }, { event: "order.changed" }],
    });
    const counting = graph("counting", (g, input: Ref<{ n: number }>) => g.step(double, input.n), { on: { event: "counted" } });
    const listening = async () => {
      const made = await setup();
      opened.push(
        await work({
          ...{ tasks: [double], workflows: [shipping, mailing], on: made.on, clock: made.clock },
          ...{ logger: false, signals: false },
        }).then((worker) => ({ close: () => worker.stop() })),
      );
      for (const each of [shipping, mailing, counting]) await made.client.define(each);
      return made;
    };
    const startedBy = ({ runs }: { runs: readonly { workflow: string }[] }) => runs.map((run) => run.workflow).sort();

    it("starts each workflow that listens for it and whose match fits, with the payload as input", async () => {
      const { client } = await listening();
      const both = await client.emit("order.created", { id: 1, to: "DE" });
      expect(startedBy(both)).toEqual(["mailing", "shipping"]);
      for (const { workflow: name, id, created } of both.runs) {
        expect(created).toBe(true);
        expect(await client.run(id).result()).toBe(name === "mailing" ? "mail 1" : "ship 1");
      }
      expect(startedBy(await client.emit("order.created", { id: 2, to: "FR" }))).toEqual(["mailing"]);
      expect(startedBy(await client.emit("order.changed", { id: 2, to: "DE" }))).toEqual(["mailing"]);
      const [counted] = (await client.emit("counted", { n: 4 })).runs;
      expect(await client.run(counted?.id ?? "").result()).toBe(8);
    });

    it("starts nothing when no workflow listens for it", async () => {
      const { client } = await listening();
      expect(await client.emit("order.lost", {})).toEqual({ event: "order.lost", runs: [] });
    });

    it("with a key twice returns the first runs, and refuses another payload", async () => {
      const { client } = await listening();
      const first = await client.emit("order.created", { id: 3, to: "AT" }, { key: "order-3" });
      const second = await client.emit("order.created", { id: 3, to: "AT" }, { key: "order-3" });
      expect(second.runs).toEqual(first.runs.map((run) => ({ ...run, created: false })));
      await expect(client.emit("order.created", { id: 4, to: "AT" }, { key: "order-3" })).rejects.toMatchObject({
        code: "LONGSHORE_CONFLICT",
      });
      const other = await client.emit("order.changed", { id: 3 }, { key: "order-3" });
      expect(other.runs.map(({ created }) => created)).toEqual([true]);
    });

    it("starts what the newest version of a workflow listens for", async () => {
      const { client } = await listening();
      await client.define(workflow("mailing", async () => null, { on: { event: "order.paid" } }));
      expect(startedBy(await client.emit("order.created", { id: 5, to: "DE" }))).toEqual(["shipping"]);
      expect(startedBy(await client.emit("order.changed", {}))).toEqual([]);
      expect(startedBy(await client.emit("order.paid", {}))).toEqual(["mailing"]);
    });

    it("starts none of its workflows when the payload does not fit the schema of one", async () => {
      const { client } = await listening();
      const strict = workflow("strict", async () => null, { input: z.object({ total: z.number() }), on: { event: "order.created" } });
      await client.define(strict);
      const refused = client.emit("order.created", { id: 6, to: "DE" }, { key: "k" });
      await expect(refused).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT", message: expect.stringContaining("strict") });
      const runs: RunStatus[] = [];
      for await (const run of client.runs()) runs.push(run);
      expect(runs).toEqual([]);
    });

    it("with an empty name or a long key is refused", async () => {
      const { client } = await listening();
      await expect(client.emit("", {})).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      await expect(client.emit("order.created", {}, { key: "k".repeat(201) })).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
    });
  });
}

function messaged<Error extends { message: RegExp }>({ message, ...rest }: Error) {
  return { ...rest, message: expect.stringMatching(message) };
}
