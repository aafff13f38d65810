import { expect, it } from "vitest";
import { LoopTurns, requestUnits, type Share } from "./loop-turns.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A connection that uses its whole share in each turn, until it has done `wanted` units of work. */
function worker(turns: LoopTurns, wanted: number) {
  const done: number[] = [];
  const state = { left: wanted, done };
  const work = () => {
    let now = 0;
    for (; state.left > 0 && !share.used; state.left--, now++) share.spend(requestUnits);
    done.push(now);
    if (state.left > 0) share.wait();
  };
  const share: Share = turns.share(work);
  work();
  return state;
}

it("a connection uses its share of a turn and continues in the next turn", async () => {
  const one = worker(new LoopTurns(), 150);
  await turn();
  await turn();
  expect(one.done).toEqual([64, 64, 22]);
});

it("a few requests are never delayed by connections that flood the server", () => {
  const turns = new LoopTurns();
  for (let at = 0; at < 5; at++) worker(turns, 1_000);
  expect(turns.full).toBe(true);
  expect(worker(turns, 4).done).toEqual([4]);
});

it("waiting connections continue one after the other, and none continues twice before another", async () => {
  const turns = new LoopTurns();
  const all = Array.from({ length: 12 }, () => worker(turns, 1_000));
  for (let at = 0; at < 3; at++) await turn();
  // In each turn, four waiting connections continue with a whole share. So after three turns, all twelve have continued once.
  for (const { done } of all) expect(done.length).toBe(2);
});

it("a connection that waits twice continues once", async () => {
  const turns = new LoopTurns();
  let resumed = 0;
  const share = turns.share(() => resumed++);
  share.wait();
  share.wait();
  expect(turns.waiting).toBe(1);
  await turn();
  expect(resumed).toBe(1);
  expect(turns.waiting).toBe(0);
});
