// Parts: the holder of the task stores each once, in order. Readers get them while they arrive, and do not get finished ones again.

import { describe, expect, it } from "vitest";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { followParts, pollParts } from "../../src/engine/part/follow.ts";
import { type NewPart, partBytesMax, putPartsMax, uidLengthMax } from "../../src/engine/part/store.ts";
import type { StepSource } from "../../src/protocols/longshore/dialect/source.ts";
import { diskFull } from "./sqlite.ts";
import type { Setup } from "./store.ts";
import { holdOf, policy, step, termMs, turns, type World } from "./world.ts";

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

  describe("a reader of parts", () => {
    it("does not get finished parts again, for any order of finishes", async () => {
      const { world, hold, reader } = await reading(setup);
      await world.parts.put(hold, uids(10).map(part));
      expect(await unread(world, 0)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      await world.parts.finish(reader, "t", ["u3", "u1", "u9"]);
      expect(await unread(world, 0)).toEqual([2, 4, 5, 6, 7, 8, 10]);
      await world.parts.finish(reader, "t", ["u2", "u10", "u1", "nothing"]);
      expect(await unread(world, 0)).toEqual([4, 5, 6, 7, 8]);
      expect(await unread(world, 5)).toEqual([6, 7, 8]);
      expect(await unread(world, 0, 2)).toEqual([4, 5]);
      await world.parts.finish(reader, "t", ["u5", "u7"]);
      expect(await unread(world, 0)).toEqual([4, 6, 8]);
      expect(await unread(world, 4)).toEqual([6, 8]);
      await world.parts.finish(reader, "t", uids(10));
      expect(await unread(world, 0)).toEqual([]);
      await world.parts.put(hold, [part("u11")]);
      expect(await unread(world, 0)).toEqual([11]);
      // What was finished is not hidden from other readers.
      expect(await sequences(world, 0, 100)).toHaveLength(11);
    });

    it("gets the same parts as a plain list of unfinished parts, for any order of finishes", async () => {
      const { world, hold, reader } = await reading(setup);
      const count = 60;
      await world.parts.put(hold, uids(count).map(part));
      const left = new Set(uids(count));
      let random = 7;
      for (let round = 0; round < 40; round++) {
        const some = uids(count).filter(() => {
          random = (random * 1_103_515_245 + 12_345) % 2_147_483_648;
          return random % 17 === 0;
        });
        for (const uid of some) left.delete(uid);
        await world.parts.finish(reader, "t", some);
        const { parts } = await world.parts.unread("r", "t", 0, 100);
        expect(parts.map(({ uid }) => uid)).toEqual([...left]);
      }
    });

    it("shows how far it is: the parts that it has finished with, and the oldest of the others", async () => {
      const { world, hold, reader } = await reading(setup);
      const life = async (id: string) => (await world.board.task(id)) as TaskRow;
      const pairs = async () => [{ reader: await life("r"), source: await life("t") }];
      const progress = async () => (await world.parts.progress(await pairs()))[0];
      expect(await world.parts.newest([await life("t"), await life("r")])).toEqual([null, null]);
      await world.parts.put(hold, uids(9).map(part));
      const first = world.clock.now();
      await world.clock.advance(5);
      await world.parts.put(hold, [part("u10")]);
      expect(await world.parts.newest([await life("r"), await life("t")])).toEqual([null, { sequence: 10, at: first + 5 }]);
      expect(await progress()).toBeNull();
      await world.parts.finish(reader, "t", ["u3", "u9"]);
      expect(await progress()).toEqual({ read: 2, isWhole: true, oldest: { sequence: 1, at: first } });
      await world.parts.finish(reader, "t", uids(9));
      expect(await progress()).toEqual({ read: 9, isWhole: true, oldest: { sequence: 10, at: first + 5 } });
      await world.parts.finish(reader, "t", ["u10"]);
      expect(await progress()).toEqual({ read: 10, isWhole: true, oldest: null });
    });

    it("continues in its next attempt where the last one finished", async () => {
      const { world, hold, reader } = await reading(setup);
      await world.parts.put(hold, uids(4).map(part));
      await world.parts.finish(reader, "t", ["u1", "u2"]);
      await world.board.fail(reader, { error: "no", retryable: true });
      expect(await world.parts.finish(reader, "t", ["u3"])).toBe("stale");
      expect(await unread(world, 0)).toEqual([3, 4]);
    });

    it("begins again when its run or its source begins again", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b")]);
      const lives: number[] = [];
      for (let life = 0; life < 2; life++) {
        const [source, reader] = [holdOf(await world.claim("a")), holdOf(await world.claim("b"))];
        await world.parts.put(source, [part("x"), part("y")]);
        lives.push((await world.parts.unread(reader.taskId, source.taskId, 0, 10)).parts.length);
        expect(await world.parts.finish(reader, source.taskId, ["x"])).toBe("ok");
        lives.push((await world.parts.unread(reader.taskId, source.taskId, 0, 10)).parts.length);
        for (const hold of [source, reader]) await world.board.fail(hold, { error: "no", retryable: false });
        await world.runs.tell(id, { kind: "restart" });
      }
      expect(lives).toEqual([2, 1, 2, 1]);
    });

    it("is woken by new parts and by the end, and waits for nothing else", async () => {
      const { world, hold } = await held(setup);
      const told: string[] = [];
      const stop = world.parts.watch("t", () => told.push("told"));
      await world.parts.put(hold, [part("a")]);
      expect(told).toHaveLength(1);
      await world.post("other");
      await world.board.extend(hold, { output: "1" });
      expect(told).toHaveLength(1);
      await world.board.complete(hold, "1");
      expect(told).toHaveLength(2);
      stop();
      stop();
    });

    it("follows a source to its end", async () => {
      const { world, hold } = await held(setup);
      const seen: string[] = [];
      const following = (async () => {
        for await (const { parts, ended } of followParts(world.parts, { source: "t" }, new AbortController().signal))
          seen.push(parts.map(({ uid }) => uid).join() || `ended ${ended}`);
      })();
      await turns();
      await world.parts.put(hold, [part("a"), part("b")]);
      await turns();
      await Promise.all([world.parts.put(hold, [part("c")]), world.board.complete(hold, "1")]);
      await following;
      expect(seen).toEqual(["a,b", "c", "ended done"]);
    });

    it("stops following when the caller ends it", async () => {
      const { world } = await held(setup);
      const stopping = new AbortController();
      const pages = followParts(world.parts, { source: "t" }, stopping.signal);
      const next = pages.next();
      await turns();
      stopping.abort();
      expect(await next).toEqual({ done: true, value: undefined });
    });

    it("that polls gets the existing parts when its time is over", async () => {
      const { world, hold } = await held(setup);
      const { clock } = world;
      expect(await pollParts(world.parts, { source: "t" }, { clock, waitMs: 0 })).toEqual({ parts: [], ended: null });
      const late = pollParts(world.parts, { source: "t" }, { clock, waitMs: 500 });
      await turns();
      await clock.advance(500);
      expect(await late).toEqual({ parts: [], ended: null });
      const woken = pollParts(world.parts, { source: "t" }, { clock, waitMs: 500 });
      await turns();
      await world.parts.put(hold, [part("a")]);
      expect(await woken).toMatchObject({ parts: [{ uid: "a" }] });
      const gone = pollParts(world.parts, { source: "t", after: 1 }, { clock, waitMs: 500, signal: AbortSignal.abort() });
      expect(await gone).toEqual({ parts: [], ended: null });
    });
  });
}

function part(uid: string, value: unknown = uid): NewPart {
  return { uid, value: JSON.stringify(typeof value === "number" && uid.startsWith("u") ? uid : value) };
}

function uids(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `u${at + 1}`);
}

async function held(setup: Setup) {
  const world = await setup();
  await world.post("t", { policy: policy({ failures: 3, lost: 3 }) });
  return { world, hold: holdOf(await world.claim()) };
}

/** A run of two steps: `b` starts with the first part of `a`, which is held. */
async function streaming(setup: Setup, parts: Partial<StepSource> = {}) {
  const world = await setup();
  const { id } = await world.start("w", [step("a", parts), step("b", { after: ["a"], startWhen: "first-part" })]);
  return { world, id, hold: holdOf(await world.claim("a")) };
}

/** `r` reads the parts of `t`. */
async function reading(setup: Setup) {
  const { world, hold } = await held(setup);
  await world.post("r", { policy: policy({ failures: 3, lost: 3 }) });
  return { world, hold, reader: holdOf(await world.claim()) };
}

async function sequences(world: World, after: number, limit: number): Promise<number[]> {
  return (await world.parts.read("t", after, limit)).parts.map(({ sequence }) => sequence);
}

async function unread(world: World, after: number, limit = 100): Promise<number[]> {
  return (await world.parts.unread("r", "t", after, limit)).parts.map(({ sequence }) => sequence);
}
