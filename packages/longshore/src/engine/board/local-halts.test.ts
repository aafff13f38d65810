import { describe, expect, it } from "vitest";
import { openParts, places } from "../../../test/support/parts.ts";
import { laneOf } from "./lanes.ts";
import type { TaskRow } from "./task.ts";

const order = { reason: "why", by: "ann" };

describe.each(places)("a paused lane in %s", (place) => {
  async function setup() {
    const parts = await openParts(place);
    let made = 0;
    const post = (labels: string[] = []) =>
      parts.board.post([{ id: `T${++made}`, step: "s", lanes: [laneOf("work", labels)], input: "null", policy: null }]);
    const claim = async (labels: string[] = [], max = 1) => {
      const reach = { names: ["work"], labels };
      return (await parts.board.claim({ reach, holder: "w", termMs: 60_000, max })).tasks.map(({ id }) => id);
    };
    const wait = async (labels: string[] = []) => {
      const got: (string | null)[] = [];
      const settle = (task: TaskRow | null) => got.push(task?.id ?? null);
      const { leave } = await parts.board.claim({ reach: { names: ["work"], labels }, holder: "w", termMs: 60_000, max: 1 }, { settle });
      return { got, leave };
    };
    return { ...parts, post, claim, wait };
  }

  it("hands out nothing, and its tasks keep their order until it is resumed", async () => {
    const { board, post, claim } = await setup();
    await post();
    expect(await board.halts.pause(laneOf("work"), order)).toMatchObject({ ...order, at: expect.any(Number) });
    await post();
    expect(await claim()).toEqual([]);
    expect(await board.halts.resume(laneOf("work"))).toBe(true);
    expect(await claim([], 5)).toEqual(["T1", "T2"]);
    expect(await board.halts.resume(laneOf("work"))).toBe(false);
  });

  it("does not stop other lanes of its name, nor lanes below it", async () => {
    const { board, post, claim } = await setup();
    await post();
    await post(["gpu"]);
    await post(["cpu"]);
    await board.halts.pause(laneOf("work", ["gpu"]), order);
    expect(await claim(["gpu", "cpu"], 5)).toEqual(["T1", "T3"]);
    await board.halts.pause(laneOf("work"), order);
    await post();
    await board.halts.resume(laneOf("work", ["gpu"]));
    expect(await claim(["gpu"], 5)).toEqual(["T2"]);
  });

  it("gives its tasks to claims that wait when it is resumed, and no new task before", async () => {
    const { board, post, wait } = await setup();
    const first = await wait();
    const second = await wait();
    await board.halts.pause(laneOf("work"), order);
    await post();
    await post();
    await post();
    expect([first.got, second.got]).toEqual([[], []]);
    await board.halts.resume(laneOf("work"));
    expect([first.got, second.got]).toEqual([["T1"], ["T2"]]);
  });

  it("does not hinder reports of tasks that are held, and takes them back", async () => {
    const { board, post, claim } = await setup();
    await post();
    expect(await claim()).toEqual(["T1"]);
    await board.halts.pause(laneOf("work"), order);
    const held = await board.task("T1");
    expect(await board.settle({ verb: "defer", hold: { taskId: "T1", grant: held?.grant ?? 0 }, delayMs: 0, unseen: true })).toBe("ok");
    expect(await claim()).toEqual([]);
    await board.halts.resume(laneOf("work"));
    expect(await claim()).toEqual(["T1"]);
  });

  it("that is paused twice stays as it was first", async () => {
    const { board, clock } = await setup();
    const halt = await board.halts.pause(laneOf("work"), order);
    await clock.advance(1_000);
    expect(await board.halts.pause(laneOf("work"), { reason: "other", by: null })).toEqual(halt);
    expect(board.halts.paused()).toEqual([[laneOf("work"), halt]]);
  });
});

describe("after a restart", () => {
  it("paused lanes and cordoned workers are as before", async () => {
    const before = await openParts("a file");
    const halt = await before.board.halts.pause(laneOf("work", ["b", "a"]), order);
    const cordon = await before.board.halts.cordon("w1", order);
    await before.board.halts.cordon("w2", order);
    expect(await before.board.halts.uncordon("w2")).toBe(true);
    await before.board.post([{ id: "T1", step: "s", lanes: [laneOf("work", ["a", "b"])], input: "null", policy: null }]);
    await before.close();
    const { board } = await openParts("a file", before);
    expect(board.halts.paused()).toEqual([[laneOf("work", ["a", "b"]), halt]]);
    expect([board.halts.cordonOf("w1"), board.halts.cordonOf("w2")]).toEqual([cordon, undefined]);
    const reach = { names: ["work"], labels: ["a", "b"] };
    expect((await board.claim({ reach, holder: "w", termMs: 1_000, max: 1 })).tasks).toEqual([]);
    await board.halts.resume(laneOf("work", ["a", "b"]));
    expect((await board.claim({ reach, holder: "w", termMs: 1_000, max: 1 })).tasks).toHaveLength(1);
  });
});
