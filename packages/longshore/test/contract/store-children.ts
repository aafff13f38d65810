// Child runs on the store: what their ends, cancels and retries mean for the run that started them, and back.

import { describe, expect, it } from "vitest";
import { fail, ref, work } from "./run-world.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, termMs, turns } from "./world.ts";

export function childContract(setup: Setup): void {
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
