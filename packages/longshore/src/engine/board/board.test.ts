import { describe, expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { Board, waitersMax } from "./board.ts";
import type { Halts } from "./halts.ts";
import { ReservedLanes } from "./reserved-lanes.ts";
import type { BoardStore, Standing } from "./store.ts";

/** A store on which nothing ever happens: claims wait until they are cancelled. */
function setup() {
  const standing: Standing[] = [];
  const expired: string[][] = [];
  const refusing = { now: false };
  const unused = () => {
    throw new Error("This test must not call it.");
  };
  const cordons = new Set<string>();
  let cordoned = (_: string) => {};
  const halts = {
    onCordon(changed: typeof cordoned) {
      cordoned = changed;
    },
    cordonOf: (worker: string) => (cordons.has(worker) ? { reason: null, by: null, at: 0 } : undefined),
  } as Halts;
  const store: BoardStore = {
    halts,
    limitChanges: { change: unused, takeBack: unused, views: unused, view: unused },
    ...{
      post: unused,
      extend: unused,
      settle: unused,
      settleAndClaim: unused,
      receipt: unused,
      cancelTask: unused,
      withdraw: unused,
      command: unused,
      task: unused,
    },
    async claim(_, stands) {
      if (stands === undefined) return { tasks: [], leave: null };
      standing.push(stands);
      return { tasks: [], leave: () => stands.settle(null) };
    },
    async expire(ids) {
      if (refusing.now) throw new Error("The disk is full.");
      expired.push([...ids]);
    },
  };
  const clock = new TestClock(0);
  const board = new Board({ store, clock, reserved: new ReservedLanes([]) });
  const wait = (waitMs: number, signal?: AbortSignal) =>
    board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 1_000, waitMs, signal });
  return { board, clock, standing, expired, refusing, wait };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("the board", () => {
  it("lets a limited number of claims wait, and refuses the next one", async () => {
    const { board, clock, wait } = setup();
    const waiting = Array.from({ length: waitersMax }, () => wait(100));
    await settled();
    expect(board.waiting).toBe(waitersMax);
    await expect(wait(100)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT", message: expect.stringContaining(String(waitersMax)) });
    expect(await wait(0)).toEqual([]);
    clock.jump(100);
    board.dismiss();
    expect((await Promise.all(waiting)).every((tasks) => tasks.length === 0)).toBe(true);
    expect(board.waiting).toBe(0);
  });

  it("leaves no timer and no listener behind when a claim is over", async () => {
    const { clock, wait } = setup();
    const gone = new AbortController();
    const claim = wait(5_000, gone.signal);
    await settled();
    expect(clock.pending).toBe(1);
    gone.abort();
    expect(await claim).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it("does not wait for a client that had disconnected before it waited", async () => {
    const { board, wait } = setup();
    expect(await wait(5_000, AbortSignal.abort())).toEqual([]);
    expect(board.waiting).toBe(0);
  });

  it("ends waiting claims empty and refuses new ones once it is dismissed", async () => {
    const { board, wait } = setup();
    const claim = wait(5_000);
    await settled();
    board.dismiss();
    expect(await claim).toEqual([]);
    await expect(wait(0)).rejects.toMatchObject({ code: "LONGSHORE_SHUTDOWN" });
    board.dismiss();
  });

  it("looks again at what was due when the store could not be written", async () => {
    const { board, clock, expired, refusing } = setup();
    refusing.now = true;
    board.deadline("t", 100);
    await clock.advance(100);
    expect(expired).toEqual([]);
    await clock.advance(3_000);
    refusing.now = false;
    await clock.advance(1_000);
    expect(expired).toEqual([["t"]]);
    board.close();
    expect(clock.pending).toBe(0);
  });
});
