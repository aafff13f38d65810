import { describe, expect, it } from "vitest";
import { deferred } from "../../test/support/until.ts";
import { TestClock } from "../testing/clock.ts";
import { Batcher } from "./batcher.ts";
import { ExportError } from "./exporter.ts";

function setup(send: (items: readonly number[]) => Promise<void> = async () => {}) {
  const clock = new TestClock();
  const sent: number[][] = [];
  const told: string[] = [];
  const batcher = new Batcher<number>({
    clock,
    send: async (items) => {
      sent.push([...items]);
      await send(items);
    },
    failing: (error) => void told.push(error.message),
    working: () => void told.push("works"),
    dropped: (count) => void told.push(`dropped ${count}`),
  });
  return { clock, sent, told, batcher };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("a batcher", () => {
  it("sends what came within a second together, and has no timer while idle", async () => {
    const { clock, sent, batcher } = setup();
    expect(clock.pending).toBe(0);
    batcher.add(1);
    await clock.advance(500);
    batcher.add(2);
    expect(sent).toEqual([]);
    await clock.advance(500);
    expect(sent).toEqual([[1, 2]]);
    expect(clock.pending).toBe(0);
  });

  it("sends a full batch at once, and the rest with the next", async () => {
    const { clock, sent, batcher } = setup();
    for (let n = 0; n < 600; n++) batcher.add(n);
    await turn();
    expect(sent.map((batch) => batch.length)).toEqual([512]);
    await clock.advance(1_000);
    expect(sent.map((batch) => batch.length)).toEqual([512, 88]);
  });

  it("tries again while the collector is away, then gives the batch up for newer ones", async () => {
    const { clock, sent, told, batcher } = setup(async ([first]) => {
      if (first === 1) throw new Error("away");
    });
    batcher.add(1);
    await clock.advance(1_000);
    batcher.add(2);
    await clock.advance(1_000 + 2_000 + 5_000 + 10_000 + 1_000);
    expect(sent).toEqual([[1], [1], [1], [1], [1], [2]]);
    await batcher.close();
    expect(told).toEqual(["away", "away", "away", "away", "away", "works", "dropped 1"]);
  });

  it("does not repeat what was refused", async () => {
    const { clock, sent, batcher } = setup(async () => {
      throw new ExportError("no");
    });
    batcher.add(1);
    await clock.advance(60_000);
    expect(sent).toEqual([[1]]);
  });

  it("drops what does not fit, and reports that at the end", async () => {
    const held = deferred<void>();
    const { told, batcher } = setup(() => held.promise);
    for (let n = 0; n < 512 + 8_192 + 5; n++) batcher.add(n);
    held.resolve();
    await batcher.close();
    expect(told.at(-1)).toBe("dropped 5");
  });

  it("sends what is left at the end, but does not wait forever", async () => {
    const { sent, told, batcher } = setup();
    batcher.add(1);
    await Promise.all([batcher.close(), batcher.close()]);
    expect(sent).toEqual([[1]]);
    batcher.add(2);
    expect(told).toEqual(["works"]);
    const stuck = setup(async () => {
      throw new Error("away");
    });
    stuck.batcher.add(1);
    const closed = stuck.batcher.close();
    await stuck.clock.advance(5_000);
    await closed;
    expect(stuck.told.at(-1)).toBe("dropped 1");
  });
});
