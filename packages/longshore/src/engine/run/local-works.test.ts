import { describe, expect, it } from "vitest";
import { Slices } from "../../core/slices/slices.ts";
import { TestClock } from "../../testing/clock.ts";
import { Postponed } from "../commit-errors.ts";
import { LongWorks } from "./local-works.ts";

function setup() {
  const clock = new TestClock();
  const works = new LongWorks(clock, new Slices());
  const postponed = (runId: string, work: Parameters<LongWorks["done"]>[1]): Promise<unknown> => {
    try {
      works.done(runId, work);
    } catch (thrown) {
      if (thrown instanceof Postponed) return thrown.until;
      throw thrown;
    }
    throw new Error("The work was done at once.");
  };
  return { clock, works, postponed };
}

/** Work of some slices, which notes the turn of the event loop in which each slice runs. */
function workOf(slices: number) {
  const turns: number[] = [];
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  function* make(): Generator<undefined, number, undefined> {
    for (let at = 0; at < slices; at++) {
      turns.push(turn);
      yield;
    }
    isOver = true;
    return slices;
  }
  return { turns, work: { key: "k", make } };
}

describe("long work of a decision", () => {
  it("runs its slices in turns of the event loop", async () => {
    const { works, postponed } = setup();
    const { turns, work } = workOf(6);
    await postponed("r", work);
    // `turnRows` is a whole turn. The first slice is not counted, so the first turn runs two slices, and each other turn runs one.
    expect(new Set(turns).size).toBe(5);
    expect(works.done("r", work)).toEqual({ value: 6 });
  });

  it("is done once for all operations that need it, and separately for each run", async () => {
    const { works, postponed } = setup();
    let made = 0;
    const work = {
      key: "k",
      *make() {
        yield;
        return ++made;
      },
    };
    await Promise.all([postponed("a", work), postponed("a", work), postponed("b", work)]);
    expect(made).toBe(2);
    expect(works.done("a", work)).not.toEqual(works.done("b", work));
  });

  it("returns its error as a result, because each operation that needs it would fail", async () => {
    const { works, postponed } = setup();
    const work = {
      key: "k",
      // biome-ignore lint/correctness/useYield: it fails before its first slice ends
      *make(): Generator<undefined, null, undefined> {
        throw new Error("wrong");
      },
    };
    await postponed("r", work);
    expect(works.done("r", work)).toEqual({ error: new Error("wrong") });
  });

  it("is forgotten after some seconds", async () => {
    const { clock, works, postponed } = setup();
    const { work } = workOf(1);
    await postponed("r", work);
    expect(works.done("r", work)).toEqual({ value: 1 });
    await clock.advance(5_000);
    await postponed("r", work);
  });
});
