// Parts: the holder of the task stores each once, in order.

import { describe, expect, it } from "vitest";
import { type NewPart, partBytesMax, putPartsMax, uidLengthMax } from "../../src/engine/part/store.ts";
import type { StepSource } from "../../src/protocols/longshore/dialect/source.ts";
import { held, part, sequences, uids } from "./parts-world.ts";
import { diskFull } from "./sqlite.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, termMs } from "./world.ts";

export function partContract(setup: Setup): void {
  describe("parts", () => {
    it("are stored in the order of their first arrival, each uid once", async () => {
      const { world, hold } = await held(setup);
      expect(await world.parts.put(hold, [part("b"), part("a")])).toBe("ok");
      expect(await world.parts.put(hold, [part("a", 2), part("c"), part("c", 2)])).toBe("ok");
      const { parts, ended } = await world.parts.read("t", 0, 10);
      expect(parts.map(({ uid, sequence, value }) => [uid, sequence, value])).toEqual([
        ["b", 1, '"b"'],
        ["a", 2, '"a"'],
        ["c", 3, '"c"'],
      ]);
      expect(parts[0]).toMatchObject({ grant: hold.grant, at: world.clock.now() });
      expect([ended, await world.parts.count("t")]).toEqual([null, 3]);
    });

    it("are searched by their names: missing ones are reported, and for an unknown task all names", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, [part("a"), part("b")]);
      expect(await world.parts.absent("t", ["b", "c", "a", "d"])).toEqual(["c", "d"]);
      expect(await world.parts.absent("none", ["a"])).toEqual(["a"]);
    });

    it("keep their place when a later attempt gives them another value", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, [part("a"), part("b")]);
      await world.board.fail(hold, { error: "no", retryable: true });
      const again = holdOf(await world.claim());
      await world.parts.put(again, [part("b", "new"), part("c")]);
      const { parts } = await world.parts.read("t", 0, 10);
      expect(parts.map(({ uid, sequence, value, grant }) => [uid, sequence, value, grant])).toEqual([
        ["a", 1, '"a"', 1],
        ["b", 2, '"new"', 3],
        ["c", 3, '"c"', 3],
      ]);
    });

    it("are read in pages after a sequence number", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, uids(25).map(part));
      expect((await sequences(world, 0, 10)).length).toBe(10);
      expect(await sequences(world, 20, 10)).toEqual([21, 22, 23, 24, 25]);
      expect(await sequences(world, 25, 10)).toEqual([]);
    });

    it("are listed in shorter pages when they are large, and never in an empty page while there are more", async () => {
      const { world, hold } = await held(setup);
      const large = "x".repeat(partBytesMax / 2);
      for (const uid of uids(3)) await world.parts.put(hold, [part(uid, large)]);
      expect(await sequences(world, 0, 10)).toEqual([1, 2]);
      expect(await sequences(world, 2, 10)).toEqual([3]);
    });

    it("of a task that does not exist, or has not begun, are an empty list", async () => {
      const world = await setup();
      expect(await world.parts.read("none", 0, 10)).toEqual({ parts: [], ended: null });
      expect(await world.parts.count("none")).toBe(0);
      expect(await world.parts.put({ taskId: "none" }, [part("a")])).toBe("gone");
    });

    it("of a task that has ended include how it ended", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, [part("a")]);
      await world.board.complete(hold, "1");
      expect(await world.parts.read("t", 0, 10)).toMatchObject({ parts: [{ uid: "a" }], ended: "done" });
      expect(await world.parts.read("t", 1, 10)).toEqual({ parts: [], ended: "done" });
    });

    it("are refused from another holder, an older grant, a lost hold, and a task that is being cancelled", async () => {
      const { world, hold } = await held(setup);
      expect(await world.parts.put({ ...hold, holder: "bob" }, [part("a")])).toBe("busy");
      expect(await world.parts.put({ ...hold, grant: 99 }, [part("a")])).toBe("gone");
      await world.clock.advance(termMs);
      expect(await world.parts.put(hold, [part("a")])).toBe("stale");
      const again = holdOf(await world.claim());
      expect(await world.parts.put(hold, [part("a")])).toBe("stale");
      await world.board.cancel("t");
      expect(await world.parts.put(again, [part("a")])).toBe("cancel");
      expect(await world.parts.count("t")).toBe(0);
    });

    it("are known to be stored when this hold has sent them recently, but not those of another hold", async () => {
      const { world, hold } = await held(setup);
      const underWay = world.parts.put(hold, [part("a"), part("b")]);
      expect(await world.parts.unkept(hold, ["a"])).toEqual(["a"]);
      await underWay;
      expect(await world.parts.unkept(hold, ["a", "c", "b"])).toEqual(["c"]);
      await world.board.fail(hold, { error: "no", retryable: true });
      expect(await world.parts.unkept(hold, ["a"])).toEqual(["a"]);
      expect(await world.parts.unkept(holdOf(await world.claim()), ["a"])).toEqual(["a"]);
      expect(await world.parts.unkept({ taskId: "none", grant: 1 }, ["a"])).toEqual(["a"]);
    });

    it("that are sent again after the end of the hold are recognised, and new ones are stale", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, [part("a"), part("b")]);
      await world.board.complete(hold, "1");
      expect(await world.parts.put(hold, [part("b"), part("a")])).toBe("again");
      expect(await world.parts.put(hold, [part("a"), part("c")])).toBe("stale");
      expect(await world.parts.put(hold, [])).toBe("stale");
    });

    it("share a commit when they arrive together", async () => {
      const { world, hold } = await held(setup);
      const before = world.store.commits();
      await Promise.all(uids(50).map((uid) => world.parts.put(hold, [part(uid)])));
      expect(world.store.commits() - before).toBe(1);
      expect(await sequences(world, 0, 100)).toEqual(uids(50).map((_, at) => at + 1));
    });

    it("are all stored or none, when the disk refuses, and continue with the next number", async () => {
      const { world, hold } = await held(setup);
      await world.parts.put(hold, [part("a")]);
      world.probe.before = () => {
        throw diskFull();
      };
      await expect(world.parts.put(hold, [part("b"), part("c")])).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      world.probe.before = undefined;
      await world.clock.advance(250);
      expect(await world.parts.count("t")).toBe(1);
      await world.parts.put(hold, [part("c")]);
      expect((await world.parts.read("t", 1, 10)).parts).toMatchObject([{ uid: "c", sequence: 2 }]);
    });

    it("that cannot be stored are refused with the reason, and no other caller fails", async () => {
      const { world, hold } = await held(setup);
      const refused = async (parts: NewPart[]) => await world.parts.put(hold, parts).catch((error: unknown) => error);
      const field = "parts[1].uid";
      expect(await refused([part("a"), part("")])).toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field } });
      expect(await refused([part("a"), part("b\u0000")])).toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field } });
      expect(await refused([part("a"), part("b".repeat(uidLengthMax + 1))])).toMatchObject({
        message: expect.stringContaining("513 char"),
      });
      expect(await refused(uids(putPartsMax + 1).map(part))).toMatchObject({ code: "LONGSHORE_LIMIT" });
      expect(await refused([part("a", "x".repeat(partBytesMax))])).toMatchObject({ code: "LONGSHORE_LIMIT", detail: { field: "parts" } });
      expect(await refused([part("a", "\u20ac".repeat(partBytesMax / 2))])).toMatchObject({ code: "LONGSHORE_LIMIT" });
      expect(await world.parts.count("t")).toBe(0);
    });

    it("of a step that its run begins again are removed, and those of a retried step are kept", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
      const first = holdOf(await world.claim("a"));
      await world.parts.put(first, [part("x")]);
      await world.board.fail(first, { error: "no", retryable: false });
      await world.runs.retry(id);
      const second = holdOf(await world.claim("a"));
      await world.parts.put(second, [part("x", 2), part("y")]);
      expect((await world.parts.read(`${id}.0`, 0, 10)).parts).toMatchObject([{ sequence: 1, value: "2" }, { sequence: 2 }]);
      await world.board.fail(second, { error: "no", retryable: false });
      await world.runs.tell(id, { kind: "restart" });
      expect(await world.parts.read(`${id}.0`, 0, 10)).toEqual({ parts: [], ended: null });
      expect(await world.parts.count(`${id}.0`)).toBe(0);
      await world.parts.put(holdOf(await world.claim("a")), [part("y")]);
      expect((await world.parts.read(`${id}.0`, 0, 10)).parts).toMatchObject([{ uid: "y", sequence: 1 }]);
    });
  });

  describe("a step that waits for a first part", () => {
    it("is started in the commit of that part, and not by another part or by the end", async () => {
      const { world, id, hold } = await streaming(setup);
      const before = world.store.commits();
      await world.parts.put(hold, [part("a"), part("b")]);
      expect(world.store.commits() - before).toBe(1);
      const reader = holdOf(await world.claim("b"));
      await world.parts.put(hold, [part("c")]);
      await world.board.complete(hold, "1");
      expect(await world.claim("b")).toBeUndefined();
      expect(await world.parts.unread(reader.taskId, hold.taskId, 0, 10)).toMatchObject({ ended: "done", parts: { length: 3 } });
      await world.board.complete(reader, "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("is not started by refused parts, and not when their commit fails", async () => {
      const { world, hold } = await streaming(setup);
      await world.parts.put({ ...hold, holder: "bob" }, [part("a")]);
      await world.parts.put(hold, []);
      world.probe.before = () => {
        throw diskFull();
      };
      await expect(world.parts.put(hold, [part("a")])).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
      world.probe.before = undefined;
      await world.clock.advance(250);
      expect(await world.claim("b")).toBeUndefined();
      await world.parts.put(hold, [part("a")]);
      expect(await world.claim("b")).toBeDefined();
    });

    it("is started once, for any attempts of its source", async () => {
      const { world, id, hold } = await streaming(setup, { retry: { failures: 2, backoff: { kind: "fixed", delayMs: 0 } } });
      await world.parts.put(hold, [part("a")]);
      await world.board.fail(hold, { error: "no", retryable: true });
      const second = holdOf(await world.claim("a"));
      await world.parts.put(second, [part("a"), part("b")]);
      await world.board.complete(second, "1");
      await world.board.complete(holdOf(await world.claim("b")), "1");
      expect(await world.claim("b")).toBeUndefined();
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("is started when its paused run is resumed", async () => {
      const { world, id, hold } = await streaming(setup);
      await world.runs.tell(id, { kind: "pause" });
      await world.parts.put(hold, [part("a")]);
      await world.board.complete(hold, "1");
      expect(await world.claim("b")).toBeUndefined();
      await world.runs.tell(id, { kind: "resume" });
      await world.board.complete(holdOf(await world.claim("b")), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("waits for a part of the new life when its run begins again", async () => {
      const { world, id, hold } = await streaming(setup);
      await world.parts.put(hold, [part("a")]);
      await world.runs.cancel(id);
      await world.runs.tell(id, { kind: "restart" });
      const again = holdOf(await world.claim("a"));
      expect(await world.claim("b")).toBeUndefined();
      await world.parts.put(again, [part("a")]);
      expect(await world.claim("b")).toBeDefined();
    });
  });
}

/** A run of two steps: `b` starts with the first part of `a`, which is held. */
async function streaming(setup: Setup, parts: Partial<StepSource> = {}) {
  const world = await setup();
  const { id } = await world.start("w", [step("a", parts), step("b", { after: ["a"], startWhen: "first-part" })]);
  return { world, id, hold: holdOf(await world.claim("a")) };
}
