// Readers of parts get them while they arrive, and do not get finished ones again.

import { describe, expect, it } from "vitest";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { followParts, pollParts } from "../../src/engine/part/follow.ts";
import { held, part, sequences, uids } from "./parts-world.ts";
import type { Setup } from "./store.ts";
import { holdOf, policy, step, turns, type World } from "./world.ts";

export function partReaderContract(setup: Setup): void {
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

/** `r` reads the parts of `t`. */
async function reading(setup: Setup) {
  const { world, hold } = await held(setup);
  await world.post("r", { policy: policy({ failures: 3, lost: 3 }) });
  return { world, hold, reader: holdOf(await world.claim()) };
}

async function unread(world: World, after: number, limit = 100): Promise<number[]> {
  return (await world.parts.unread("r", "t", after, limit)).parts.map(({ sequence }) => sequence);
}
