// Runs on the store: definitions, start, following steps, stop, retry, and child runs.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, step, termMs, turns, type World } from "./world.ts";

const ref = (id: string, ...path: string[]) => ({ $ref: { step: id, path } });

/** Claims one task from the lane and completes it. */
async function work(world: World, lane: string, output = "1"): Promise<void> {
  const verdict = await world.board.complete(holdOf(await world.claim(lane)), output);
  if (verdict !== "ok") throw new Error(`The task on ${lane} was not completed: ${verdict}.`);
}

async function fail(world: World, lane: string): Promise<void> {
  await world.board.fail(holdOf(await world.claim(lane)), { error: "boom", retryable: false });
}

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

  describe("child runs", () => {
    const parent = [step("child", { workflow: "inner", input: { n: 1 } }), step("after", { input: ref("child") })];

    async function family(parts: { totalMs?: number } = {}) {
      const world = await setup();
      await world.define("inner", [step("inside", { input: { $ref: { path: ["n"] } } })], { output: ref("inside") });
      const { id } = await world.start("outer", [{ ...parent[0], ...parts } as (typeof parent)[0], parent[1] as (typeof parent)[1]]);
      await turns(10);
      return { world, id };
    }

    it("pass their output to the step that started them", async () => {
      const { world, id } = await family();
      const held = await world.claim("inside");
      expect(held?.input).toBe("1");
      await world.board.complete(holdOf(held), '"deep"');
      await turns(10);
      const after = await world.claim("after");
      expect(after?.input).toBe('"deep"');
      await world.board.complete(holdOf(after), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("fail the step when they fail, or when there is no such workflow", async () => {
      const { world, id } = await family();
      await fail(world, "inside");
      await turns(10);
      expect(await world.run(id)).toMatchObject({ state: "failed", error: "step child failed: step inside failed: boom" });
      // An earlier version accepted and stored it.
      const source = JSON.stringify({ name: "lonely", steps: [step("x", { workflow: "nothing" })], output: null });
      await world.store.runs.define({ id: "lonely", name: "lonely", dialect: "code", source });
      const other = (await world.runs.start({ workflow: "lonely", input: "null" })).run;
      await turns(10);
      expect(await world.run(other.id)).toMatchObject({ state: "failed", error: "step x failed: there is no workflow nothing" });
    });

    it("are cancelled with their parent", async () => {
      const { world, id } = await family();
      const held = await world.claim("inside");
      await world.runs.cancel(id);
      await turns(10);
      expect((await world.board.extend(holdOf(held))).verdict).toBe("cancel");
      expect((await world.run(held?.runId as string)).state).toBe("cancelled");
      expect((await world.run(id)).state).toBe("cancelled");
    });

    it("are cancelled before the cancel of their parent gets its answer, together with their own children", async () => {
      const world = await setup();
      await world.define("inner", [step("inside")]);
      await world.define("middle", [step("child", { workflow: "inner" })]);
      const { id } = await world.start("outer", [step("child", { workflow: "middle" })]);
      await turns(20);
      const held = await world.claim("inside");
      await world.runs.cancel(id);
      expect((await world.run(held?.runId as string)).state).toBe("cancelled");
    });

    it("are cancelled when the step that started them times out or is cancelled alone", async () => {
      const timed = await family({ totalMs: 500 });
      const held = await timed.world.claim("inside");
      await timed.world.clock.advance(500);
      await turns(10);
      expect(await timed.world.run(timed.id)).toMatchObject({
        state: "failed",
        error: "step child failed: timed out: the task took too long",
      });
      expect((await timed.world.run(held?.runId as string)).state).toBe("cancelled");

      const cancelled = await family();
      const inside = await cancelled.world.claim("inside");
      await cancelled.world.board.cancel(`${cancelled.id}.0`);
      await turns(10);
      expect((await cancelled.world.run(inside?.runId as string)).state).toBe("cancelled");
    });

    it("fail the step when they time out, and are not started again", async () => {
      const world = await setup();
      const source = JSON.stringify({ name: "inner", steps: [step("inside")], output: null, timeoutMs: 500 });
      await world.store.runs.define({ id: "inner", name: "inner", dialect: "code", source });
      const { id } = await world.start("outer", [step("child", { workflow: "inner" })]);
      await turns(10);
      await world.clock.advance(500);
      await turns(10);
      expect(await world.run(id)).toMatchObject({ state: "failed", error: "step child failed: the run took too long" });
      expect(await world.claim("inside")).toBeUndefined();
      await world.runs.retry(id);
      await turns(10);
      await work(world, "inside");
      await turns(10);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("continue when their parent is retried, and their earlier lives do not affect it", async () => {
      const { world, id } = await family();
      const first = await world.claim("inside");
      // Both at once: messages to and from the child are still pending when it continues.
      const told = [world.runs.cancel(id), world.runs.retry(id).catch(() => undefined)];
      await Promise.all(told);
      if ((await world.run(id)).state === "cancelled") await world.runs.retry(id);
      await turns(20);
      const second = await world.claim("inside", { holder: "bob" });
      expect(second?.runId).toBe(first?.runId);
      expect(["cancel", "stale"]).toContain(await world.board.complete(holdOf(first), "1"));
      await world.board.complete(holdOf(second), "2");
      await turns(10);
      await work(world, "after");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("keep their successful steps when their parent is retried, at any depth", async () => {
      const world = await setup();
      await world.define("inner", [step("kept"), step("broken", { after: ["kept"] })]);
      await world.define("middle", [step("child", { workflow: "inner" })]);
      const { id } = await world.start("outer", [step("child", { workflow: "middle" })]);
      await turns(20);
      await work(world, "kept");
      await fail(world, "broken");
      await turns(20);
      expect((await world.run(id)).state).toBe("failed");
      await world.runs.retry(id);
      await turns(20);
      expect(await world.claim("kept")).toBeUndefined();
      await work(world, "broken");
      await turns(20);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("are started again with a new version of their workflow when their parent is retried", async () => {
      const { world, id } = await family();
      await fail(world, "inside");
      await turns(10);
      await world.define("inner", [step("mended")]);
      await world.runs.retry(id);
      await turns(10);
      expect(await world.claim("inside")).toBeUndefined();
      await work(world, "mended");
      await turns(10);
      await work(world, "after");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("that succeeded after their own retry pass their result to a parent that is retried", async () => {
      const { world, id } = await family();
      const held = await world.claim("inside");
      await world.board.fail(holdOf(held), { error: "boom", retryable: false });
      await turns(10);
      await world.runs.retry(held?.runId as string);
      await world.board.complete(holdOf(await world.claim("inside")), '"late"');
      await turns(10);
      expect((await world.run(id)).state).toBe("failed");
      await world.runs.retry(id);
      await turns(10);
      const after = await world.claim("after");
      expect(after?.input).toBe('"late"');
      await world.board.complete(holdOf(after), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("are cancelled with their parent also after the parent was retried", async () => {
      const { world, id } = await family();
      await world.runs.cancel(id);
      await turns(10);
      await world.runs.retry(id);
      await turns(10);
      const second = await world.claim("inside");
      expect((await world.run(second?.runId as string)).state).toBe("running");
      await world.runs.cancel(id);
      await turns(10);
      expect((await world.run(second?.runId as string)).state).toBe("cancelled");
    });

    it("are started again when they had failed", async () => {
      const { world, id } = await family();
      await fail(world, "inside");
      await turns(10);
      await world.runs.retry(id);
      await turns(10);
      await work(world, "inside", '"now"');
      await turns(10);
      await work(world, "after");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("that cannot be started do not delay others, and are tried again", async () => {
      const world = await setup();
      await world.store.runs.define({ id: "d", name: "foreign", dialect: "not-installed", source: "{}" });
      await world.define("inner", [step("inside")]);
      await world.start("stuck", [step("x", { workflow: "foreign" })]);
      const { id } = await world.start("outer", [step("child", { workflow: "inner" })]);
      await turns(20);
      await work(world, "inside");
      await turns(10);
      expect((await world.run(id)).state).toBe("succeeded");
      expect(await world.store.runs.messages()).toHaveLength(1);
      await world.define("foreign", [step("inside")]);
      await world.clock.advance(1_000);
      await turns(10);
      expect(await world.claim("inside")).toBeDefined();
      expect(await world.store.runs.messages()).toHaveLength(0);
    });

    it("that cannot be started do not delay others, in any number", async () => {
      const world = await setup();
      await world.store.runs.define({ id: "d", name: "foreign", dialect: "not-installed", source: "{}" });
      await world.define("inner", [step("inside")]);
      const many = Array.from({ length: 130 }, (_, at) => step(`x${at}`, { workflow: "foreign" }));
      await world.start("stuck", many);
      const { id } = await world.start("outer", [step("child", { workflow: "inner" })]);
      await turns(400);
      await work(world, "inside");
      await turns(400);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("can be nested, and a hold that is lost deep inside is retried there", async () => {
      const world = await setup();
      await world.define("c", [step("deep")], { output: ref("deep") });
      await world.define("b", [step("c", { workflow: "c" })], { output: ref("c") });
      const { id } = await world.start("a", [step("b", { workflow: "b" })], { output: ref("b") });
      await turns(20);
      await world.claim("deep");
      await world.clock.advance(termMs);
      await work(world, "deep", '"bottom"');
      expect(await world.runs.result(id)).toMatchObject({ state: "succeeded", output: '"bottom"' });
    });
  });
}
