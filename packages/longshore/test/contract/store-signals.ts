// Signals: each key is stored once, and signals are passed to waiting steps, the oldest signal to the oldest wait.

import { describe, expect, it } from "vitest";
import { keptSignalBytesMax, keptSignalsMax, signalKeyMax, signalNameMax } from "../../src/engine/signal/signal.ts";
import type { StepSource } from "../../src/protocols/longshore/dialect/source.ts";
import type { Setup } from "./store.ts";
import { wait, waitingDialect } from "./waiting-dialect.ts";
import { holdOf, step, turns, type World } from "./world.ts";

const ref = (id: string, ...path: string[]) => ({ $ref: { step: id, path } });

export function signalContract(setup: Setup): void {
  const begin = async (steps: StepSource[], parts: Parameters<World["start"]>[2] = {}) => {
    const world = await setup();
    const { id } = await world.start("w", steps, { ...parts, dialect: waitingDialect.name });
    return { world, id, ...about(world, id) };
  };

  describe("a signal", () => {
    it("ends the step that waits for it, and its value is the step's output", async () => {
      const { world, id, send, list } = await begin([wait("approve"), step("ship", { input: ref("approve", "by") })]);
      expect(await world.task(`${id}.0`)).toMatchObject({ state: "queued", signal: "approve", lane: null });
      const sent = await send("approve", { by: "Ann" });
      expect(sent).toMatchObject({ runId: id, number: 1, name: "approve", key: null, value: null, taskId: `${id}.0`, attempt: 0 });
      expect(sent.takenAt).toBe(world.clock.now());
      expect(await world.task(`${id}.0`)).toMatchObject({ state: "done", output: '{"by":"Ann"}', closedBy: "complete" });
      expect((await world.claim("ship"))?.input).toBe('"Ann"');
      expect(await list()).toEqual([sent]);
      expect((await world.run(id)).signals).toBe("[1,0,0]");
    });

    it("is kept and visible until a step waits for it; the step then ends at once", async () => {
      const { world, send, list } = await begin([
        step("first"),
        wait("approve", { after: ["first"] }),
        step("ship", { input: ref("approve") }),
      ]);
      const sent = await send("approve", "yes");
      expect(sent).toMatchObject({ number: 1, value: '"yes"', takenAt: null, taskId: null });
      expect(await list("kept")).toEqual([sent]);
      const before = world.store.commits();
      await world.board.complete(holdOf(await world.claim("first")), "1");
      // One for the claim, one for the report: the wait began and ended in the transaction of the report.
      expect(world.store.commits() - before).toBe(2);
      expect((await world.claim("ship"))?.input).toBe('"yes"');
      expect([await list("kept"), (await list("taken")).length]).toEqual([[], 1]);
    });

    it("of another name is not taken", async () => {
      const { world, id, send, list } = await begin([wait("approve")]);
      await send("aprove", 1);
      expect((await world.task(`${id}.0`)).state).toBe("queued");
      expect(await list("kept")).toMatchObject([{ name: "aprove", value: "1" }]);
    });

    it("of one name is taken in the order of sending, by steps in the order in which they began to wait", async () => {
      const waits = ["a", "b", "c"].map((name) => wait(name, { signal: "go" }));
      const { world, id, send } = await begin([step("first"), ...waits.map((one) => ({ ...one, after: ["first"] }))]);
      await Promise.all([send("go", 1), send("go", 2)]);
      await world.board.complete(holdOf(await world.claim("first")), "1");
      await send("go", 3);
      expect([await outputs(world, id, 3)]).toEqual([["1", "2", "3"]]);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("that is sent in the transaction in which its wait begins is taken, in either order", async () => {
      for (const first of ["report", "signal"]) {
        const { world, id, send } = await begin([step("first"), wait("go", { after: ["first"] })]);
        const hold = holdOf(await world.claim("first"));
        const orders = { report: () => world.board.complete(hold, "1"), signal: () => send("go", "now") };
        await Promise.all(first === "report" ? [orders.report(), orders.signal()] : [orders.signal(), orders.report()]);
        expect(await world.run(id)).toMatchObject({ state: "succeeded", signals: "[1,0,0]" });
      }
    });

    it("may have a name from the data of the run", async () => {
      const { world, id, send } = await begin([wait("approve", { signal: { $ref: { path: ["order"] } } })], {
        input: { order: "order-7" },
      });
      expect((await world.task(`${id}.0`)).signal).toBe("order-7");
      await send("order-7", true);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("with an invalid name from the data fails the step that would wait for it", async () => {
      for (const order of [7, "", "x".repeat(signalNameMax + 1)]) {
        const { world, id } = await begin([wait("approve", { signal: { $ref: { path: ["order"] } } })], { input: { order } });
        expect((await world.run(id)).error).toContain("the name of its signal is");
      }
    });

    it("without a value is null, and any JSON value is kept unchanged", async () => {
      for (const value of [null, false, 0, "", [], {}, 12345678901234567890n, { a: [1, { b: null }] }]) {
        const { world, id } = await begin([wait("go")]);
        const text = typeof value === "bigint" ? String(value) : JSON.stringify(value);
        await world.signals.send(id, { name: "go", value: text });
        expect((await world.task(`${id}.0`)).output).toBe(text);
      }
    });
  });

  describe("a key", () => {
    it("makes a second send return the first signal without a change, also at the same time and with another value", async () => {
      const { world, id, send, list } = await begin([
        step("a"),
        wait("go", { after: ["a"] }),
        wait("go2", { signal: "go", after: ["go"] }),
      ]);
      const [first, second] = await Promise.all([send("go", 1, "k"), send("go", 2, "k")]);
      expect(second).toEqual(first);
      expect(await send("other", 3, "k")).toEqual(first);
      expect(await list()).toEqual([first]);
      await world.board.complete(holdOf(await world.claim("a")), "1");
      expect(await send("go", 4, "k")).toMatchObject({ number: 1, taskId: `${id}.1` });
      expect((await world.task(`${id}.2`)).state).toBe("queued");
      expect(await send("go", 5, "l")).toMatchObject({ number: 2, taskId: `${id}.2` });
    });

    it("is still known after the end of the run, which accepts no other signal", async () => {
      const { world, id, send } = await begin([wait("go")]);
      const first = await send("go", 1, "k");
      expect((await world.run(id)).state).toBe("succeeded");
      expect(await send("go", 2, "k")).toEqual(first);
      await expect(send("go", 2, "l")).rejects.toMatchObject({
        code: "LONGSHORE_CONFLICT",
        message: `Run ${id} has ended as succeeded: it takes no more signals.`,
      });
      await expect(send("go", 2)).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      expect((await world.run(id)).signals).toBe("[1,0,0]");
    });

    it("belongs to one run", async () => {
      const { world, id, send } = await begin([wait("go")]);
      const other = (await world.runs.start({ workflow: "w", input: "null" })).run.id;
      await send("go", 1, "k");
      expect(await world.signals.send(other, { name: "go", value: "2", key: "k" })).toMatchObject({ runId: other, taskId: `${other}.0` });
      expect((await world.run(id)).state).toBe("succeeded");
    });
  });

  describe("a wait that has ended otherwise", () => {
    it("by its timeout receives no more signals", async () => {
      const { world, id, send } = await begin([wait("go", { totalMs: 500 }), step("other")]);
      await world.clock.advance(500);
      expect(await world.task(`${id}.0`)).toMatchObject({ state: "failed", fault: "timed-out" });
      expect(await send("go", 1)).toMatchObject({ takenAt: null });
    });

    it("by its time, a report or a cancel receives no more signals", async () => {
      const { world, id, send, list } = await begin([wait("a", { until: 400 }), wait("b"), wait("c"), step("other")]);
      await world.clock.advance(Math.max(0, 400 - world.clock.now()));
      await world.board.complete({ taskId: `${id}.1` }, "7");
      await world.board.cancel(`${id}.2`);
      for (const name of ["a", "b", "c"]) await send(name, "late");
      expect((await list("kept")).map(({ name }) => name)).toEqual(["a", "b", "c"]);
      expect((await world.task(`${id}.1`)).output).toBe("7");
    });

    it("with its run receives no signal: signals are kept for the next life", async () => {
      const { world, id, send, list } = await begin([step("a"), wait("go", { after: ["a"] })]);
      await send("go", "kept");
      await world.board.fail(holdOf(await world.claim("a")), { error: "boom", retryable: false });
      expect((await world.run(id)).state).toBe("failed");
      expect(await list("kept")).toHaveLength(1);
      await world.runs.retry(id);
      await world.board.complete(holdOf(await world.claim("a")), "1");
      expect(await world.run(id)).toMatchObject({ state: "succeeded" });
      expect((await world.task(`${id}.1`)).output).toBe('"kept"');
    });

    it("waits again in the next life of its run, for another signal", async () => {
      const { world, id, send } = await begin([wait("go"), step("a", { after: ["go"] })]);
      await world.runs.cancel(id);
      await expect(send("go", 1)).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      await world.runs.retry(id);
      expect(await send("go", 2)).toMatchObject({ taskId: `${id}.0`, attempt: 1 });
      expect((await world.task(`${id}.0`)).output).toBe("2");
    });
  });

  describe("a paused run", () => {
    it("receives a signal, and continues after the wait when it is resumed", async () => {
      const { world, id, send } = await begin([wait("go"), step("a", { after: ["go"] })]);
      await world.runs.tell(id, { kind: "pause" });
      expect(await send("go", 1)).toMatchObject({ taskId: `${id}.0` });
      expect(await world.claim("a")).toBeUndefined();
      await world.runs.tell(id, { kind: "resume" });
      expect(await world.claim("a")).toBeDefined();
    });

    it("keeps a signal that no step waits for", async () => {
      const { world, id, send } = await begin([step("a"), wait("go", { after: ["a"] })]);
      const hold = holdOf(await world.claim("a"));
      await world.runs.tell(id, { kind: "pause" });
      await send("go", 1);
      await world.board.complete(hold, "1");
      await world.runs.tell(id, { kind: "resume" });
      expect(await world.run(id)).toMatchObject({ state: "succeeded", signals: "[1,0,0]" });
    });

    it("passes a signal to a step that failed meanwhile and is retried", async () => {
      const retry = { failures: 1, backoff: { kind: "fixed" as const, delayMs: 0 } };
      const { world, id, send } = await begin([wait("go", { retry })]);
      await world.runs.tell(id, { kind: "pause" });
      await world.board.fail({ taskId: `${id}.0` }, { error: "no", retryable: true });
      expect(await send("go", 1)).toMatchObject({ takenAt: null });
      await world.runs.tell(id, { kind: "resume" });
      await turns();
      expect(await world.run(id)).toMatchObject({ state: "succeeded", signals: "[1,0,0]" });
    });
  });

  describe("signals in numbers", () => {
    it("end a chain of waits, in several transactions when there are many", async () => {
      const steps = Array.from({ length: 70 }, (_, at) => wait(`w${at}`, { signal: "go", after: [at === 0 ? "first" : `w${at - 1}`] }));
      const { world, id, send } = await begin([step("first"), ...steps]);
      await Promise.all(steps.map((_, at) => send("go", at)));
      await world.board.complete(holdOf(await world.claim("first")), "1");
      await turns(20);
      expect(await world.run(id)).toMatchObject({ state: "succeeded", signals: "[70,0,0]" });
      expect(await outputs(world, id, 70)).toEqual(steps.map((_, at) => String(at)));
    });

    it("are kept up to a maximum number, and a known key still returns its signal", async () => {
      const { world, id, send } = await begin([step("a"), wait("go", { after: ["a"] })]);
      await send("go", 0, "first");
      await Promise.all(Array.from({ length: keptSignalsMax - 1 }, () => send("other", 1)));
      await expect(send("other", 2)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
      expect(await send("go", 0, "first")).toMatchObject({ number: 1 });
      await world.board.complete(holdOf(await world.claim("a")), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("are kept up to a maximum size in bytes", async () => {
      const { send } = await begin([step("a")]);
      const large = "x".repeat(keptSignalBytesMax / 2);
      await send("go", large);
      await expect(send("go", large)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
      await send("go", "small");
    });

    it("are listed in pages", async () => {
      const { world, id, send } = await begin([step("a")]);
      for (let at = 0; at < 5; at++) await send("go", at);
      const first = await world.signals.list(id, { limit: 2 });
      expect([first.items.map(({ number }) => number), first.next]).toEqual([[1, 2], 2]);
      const rest = await world.signals.list(id, { limit: 3, after: 2 });
      expect([rest.items.map(({ number }) => number), rest.next]).toEqual([[3, 4, 5], null]);
      expect((await world.signals.list("none", { limit: 3 })).items).toEqual([]);
    });

    it("are refused with a bad name or key, or without a run", async () => {
      const { world, send } = await begin([wait("go")]);
      for (const name of ["", "a\u0000b", "\ud800", "x".repeat(signalNameMax + 1)])
        await expect(send(name, 1)).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      for (const key of ["", "\u0000", "x".repeat(signalKeyMax + 1)])
        await expect(send("go", 1, key)).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
      await expect(world.signals.send("none", { name: "go", value: "1" })).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    });
  });
}

function about(world: World, id: string) {
  return {
    send: (name: string, value: unknown, key?: string) => world.signals.send(id, { name, value: JSON.stringify(value), key }),
    list: async (state?: "kept" | "taken") => (await world.signals.list(id, { limit: 100, state })).items,
  };
}

async function outputs(world: World, id: string, count: number): Promise<(string | null)[]> {
  const tasks = await Promise.all(Array.from({ length: count }, (_, at) => world.task(`${id}.${at + 1}`)));
  return tasks.map(({ output }) => output);
}
