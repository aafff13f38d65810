// Runs on the store: definitions, start, following steps, stop and retry.

import { describe, expect, it } from "vitest";
import { fail, ref, work } from "./run-world.ts";
import type { Setup } from "./store.ts";
import { holdOf, step } from "./world.ts";

export function runContract(setup: Setup): void {
  describe("definitions", () => {
    it("have numbered versions, and the same source again is not a new version", async () => {
      const { runs, define } = await setup();
      await define("w", [step("a")]);
      await define("w", [step("a")]);
      expect((await runs.definition("w"))?.version).toBe(1);
      await define("w", [step("b")]);
      expect((await runs.definition("w"))?.version).toBe(2);
      expect(await runs.definition("nothing")).toBeUndefined();
    });

    it("that are stored at the same time get different versions", async () => {
      const { runs, define } = await setup();
      await Promise.all([define("w", [step("a")]), define("w", [step("b")]), define("v", [step("a")])]);
      expect([(await runs.definition("w"))?.version, (await runs.definition("v"))?.version]).toEqual([2, 1]);
    });

    it("stay with the runs that were started with them", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
      await world.define("w", [step("a"), step("c", { after: ["a"] })]);
      await work(world, "a");
      await work(world, "b");
      expect((await world.run(id)).state).toBe("succeeded");
    });
  });

  describe("starting", () => {
    it("with the same key starts one run, also when both requests arrive at once", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const start = () => world.runs.start({ workflow: "w", input: "null", key: "order-1" });
      const [first, second] = await Promise.all([start(), start()]);
      const third = await start();
      expect([first.created, second.created, third.created]).toEqual([true, false, false]);
      expect(new Set([first.run.id, second.run.id, third.run.id]).size).toBe(1);
      expect(await world.claim("a")).toBeDefined();
      expect(await world.claim("a")).toBeUndefined();
    });

    it("with the key of a run with another input is refused with the key, also when both requests arrive at once", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      await world.define("v", [step("a")]);
      const start = (input: string, workflow = "w") => world.runs.start({ workflow, input, key: "order-1" });
      const [first, second] = await Promise.allSettled([start('{"a":1,"b":2}'), start('{"a":2}')]);
      const { id } = first.status === "fulfilled" ? first.value.run : { id: "" };
      const refusal = { code: "LONGSHORE_CONFLICT", message: expect.stringContaining(id), detail: { run: id } };
      expect(second).toMatchObject({ status: "rejected", reason: refusal });
      await expect(start("null")).rejects.toMatchObject(refusal);
      expect(await start('{"b":2,"a":1}')).toMatchObject({ created: false, run: { id } });
      expect((await start("null", "v")).created).toBe(true);
    });

    it("with a known id starts nothing when the check is requested, also when both arrive at once", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const definitionId = (await world.runs.definition("w"))?.id ?? "";
      const begin = (input: string) => world.runs.begin({ id: "item-1", unlessThere: true, workflow: "w", definitionId, input });
      const [first, second] = await Promise.all([begin("1"), begin("2")]);
      expect([first.created, second.created]).toEqual([true, false]);
      await work(world, "a");
      const third = await begin("3");
      expect(third).toMatchObject({ created: false, run: { id: "item-1", input: "1", state: "succeeded" } });
      expect(await world.claim("a")).toBeUndefined();
    });

    it("returns the open run when the option requests this, and a new run after its end", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const start = () => world.runs.start({ workflow: "w", input: "null", unlessRunning: true });
      const [first, second] = await Promise.all([start(), start()]);
      expect([first.created, second.created]).toEqual([true, false]);
      await work(world, "a");
      expect((await start()).created).toBe(true);
    });

    it("refuses a workflow that does not exist", async () => {
      const { runs } = await setup();
      await expect(runs.start({ workflow: "nothing", input: "null" })).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
    });
  });

  describe("a run", () => {
    it("passes results from step to step, and ends with its output", async () => {
      const world = await setup();
      const steps = [step("a", { input: { $ref: { path: ["name"] } } }), step("b", { input: { from: ref("a", "text") } })];
      const { id } = await world.start("w", steps, { input: { name: "Ann" }, output: { b: ref("b") } });
      const result = world.runs.result(id);
      const held = await world.claim("a");
      expect(held?.input).toBe('"Ann"');
      await world.board.complete(holdOf(held), '{"text":"Hello"}');
      const next = await world.claim("b");
      expect(next?.input).toBe('{"from":"Hello"}');
      await world.board.complete(holdOf(next), "[1]");
      expect(await result).toMatchObject({ state: "succeeded", output: '{"b":[1]}', left: 0 });
    });

    it("ends with an output whose texts must be read first", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b")], { dialect: "all-outputs" });
      await work(world, "b", '"2"');
      await work(world, "a", '"1"');
      expect(await world.run(id)).toMatchObject({ state: "succeeded", output: '["1","2"]' });
    });

    it("starts a join once when all its upstreams are completed at the same time", async () => {
      const world = await setup();
      const wide = Array.from({ length: 40 }, (_, at) => `s${at}`);
      const { id } = await world.start("w", [...wide.map((name) => step(name)), step("join", { after: wide })]);
      const held = await Promise.all(wide.map((name) => world.claim(name)));
      const verdicts = await Promise.all(held.map((task) => world.board.complete(holdOf(task), "1")));
      expect(new Set(verdicts)).toEqual(new Set(["ok"]));
      await work(world, "join");
      expect(await world.claim("join")).toBeUndefined();
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("processes a failure through a long chain of joins in the same commit", async () => {
      const world = await setup();
      const length = 300;
      const names = Array.from({ length }, (_, at) => `s${at}`);
      const steps = names.map((name, at) => step(name, { after: at === 0 ? [] : at === 1 ? ["s0"] : ["s0", `s${at - 1}`] }));
      const { id } = await world.start("w", steps);
      await work(world, "s0");
      const before = world.store.commits();
      await fail(world, "s1");
      expect(await world.run(id)).toMatchObject({ state: "failed", left: 0, error: "step s1 failed: boom" });
      expect(world.store.commits() - before).toBe(2);
      expect((await world.task(`${id}.${length - 1}`)).state).toBe("skipped");
    });

    it("fails by a step that was cancelled alone, whether queued or held", async () => {
      for (const taken of [false, true]) {
        const world = await setup();
        const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
        const held = taken ? await world.claim("a") : undefined;
        expect(await world.board.cancel(`${id}.0`)).toBe(true);
        expect(await world.run(id)).toMatchObject({ state: "failed", error: "step a cancelled" });
        if (held !== undefined) expect(await world.board.complete(holdOf(held), "1")).toBe("cancel");
        expect(await world.claim("b")).toBeUndefined();
      }
    });

    it("that is cancelled hands out nothing more, and stays cancelled after any report", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b"), step("c", { after: ["a"] })]);
      const hold = holdOf(await world.claim("a"));
      expect(await world.runs.cancel(id)).toMatchObject({ state: "cancelled" });
      expect(await world.claim(["a", "b", "c"])).toBeUndefined();
      expect((await world.board.extend(hold)).verdict).toBe("cancel");
      expect(await world.board.complete(hold, "1")).toBe("cancel");
      expect(await world.claim(["a", "b", "c"])).toBeUndefined();
      expect(await world.run(id)).toMatchObject({ state: "cancelled" });
      expect([(await world.task(`${id}.0`)).state, (await world.task(`${id}.1`)).state]).toEqual(["cancelled", "cancelled"]);
      expect(await world.runs.cancel(id)).toMatchObject({ state: "cancelled" });
      expect(await world.runs.cancel("nobody")).toBeUndefined();
    });

    it("that takes too long is stopped at its time", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a")], { timeoutMs: 500 });
      const hold = holdOf(await world.claim("a"));
      await world.clock.advance(499);
      expect((await world.run(id)).state).toBe("running");
      await world.clock.advance(1);
      expect(await world.run(id)).toMatchObject({ state: "timed-out", error: "the run took too long" });
      expect((await world.board.extend(hold)).verdict).toBe("cancel");
    });
  });

  describe("retrying a run", () => {
    it("keeps successful steps, and refuses reports with holds of its earlier life", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] }), step("c", { after: ["b"] })]);
      await work(world, "a");
      const old = holdOf(await world.claim("b"));
      await world.runs.cancel(id);
      expect(await world.runs.retry(id)).toMatchObject({ state: "running", left: 2, retries: 1 });
      expect(await world.claim("a")).toBeUndefined();
      const again = await world.claim("b", { holder: "bob" });
      expect(again?.grant).toBeGreaterThan(old.grant as number);
      expect(await world.board.complete({ taskId: old.taskId, grant: old.grant }, "1")).toBe("stale");
      await world.board.complete(holdOf(again), "1");
      await work(world, "c");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("is refused while it runs, and when there is nothing to retry", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a")]);
      await expect(world.runs.retry(id)).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      await work(world, "a");
      await expect(world.runs.retry(id)).rejects.toMatchObject({ code: "LONGSHORE_CONFLICT" });
      expect(await world.runs.retry("nobody")).toBeUndefined();
      expect((await world.runs.rerun(id))?.id).not.toBe(id);
    });

    it("continues when a step that always starts has been retried, made void and retried again", async () => {
      const world = await setup();
      const retry = { failures: 1, backoff: { kind: "fixed" as const, delayMs: 0 } };
      const { id } = await world.start("w", [step("a"), step("clean", { after: ["a"], always: true, retry })]);
      for (let life = 0; life < 3; life++) {
        await fail(world, "a");
        for (let attempt = 0; attempt < 2; attempt++)
          await world.board.fail(holdOf(await world.claim("clean")), { error: "no", retryable: true });
        expect((await world.run(id)).state).toBe("failed");
        await world.runs.retry(id);
      }
      await work(world, "a");
      await work(world, "clean");
      expect((await world.run(id)).state).toBe("succeeded");
      expect((await world.task(`${id}.1`)).grant).toBeGreaterThan(12);
    });

    it("returns the permit of a step that was still running", async () => {
      const world = await setup();
      const limits = [{ key: "api", held: 1 }];
      const { id } = await world.start("w", [step("a"), step("clean", { after: ["a"], always: true, limits })]);
      await fail(world, "a");
      await world.claim("clean");
      await world.runs.cancel(id);
      await world.runs.retry(id);
      await work(world, "a");
      expect(await world.claim("clean")).toBeDefined();
    });
  });
}
