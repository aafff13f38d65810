import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { logBacklogBytesMax, TaskLog } from "./logs.ts";
import type { LogEntry } from "./transport.ts";

function setup(send?: (entries: readonly LogEntry[]) => Promise<void>) {
  const clock = new TestClock();
  const batches: LogEntry[][] = [];
  const dropped: number[] = [];
  const log = new TaskLog({
    clock,
    batch: { everyMs: 500, bytesMax: 1_000 },
    send: async (entries) => {
      await send?.(entries);
      batches.push([...entries]);
    },
    failing: () => {},
    working: () => {},
    dropped: (lines) => void dropped.push(lines),
  });
  const giveUp = new AbortController().signal;
  const close = () => log.close(giveUp);
  const end = (answered: boolean) => log.end(answered, giveUp);
  const texts = () => batches.map((batch) => batch.map((entry) => entry.text));
  return { clock, log, batches, dropped, close, end, texts };
}

describe("a task's log", () => {
  it("has no timer while it is empty, and one while lines wait", async () => {
    const s = setup();
    expect(s.clock.pending).toBe(0);
    s.log.add("one", "stdout");
    s.log.add("two\n", "stderr");
    expect(s.clock.pending).toBe(1);
    await s.clock.advance(500);
    expect(s.texts()).toEqual([["one\n", "two\n"]]);
    expect(s.batches[0]?.map((entry) => [entry.sequence, entry.stream])).toEqual([
      [0, "stdout"],
      [1, "stderr"],
    ]);
    expect(s.clock.pending).toBe(0);
  });

  it("sends a full batch at once and never more than one at a time", async () => {
    const s = setup();
    for (let line = 0; line < 30; line++) s.log.add("x".repeat(99), "stdout");
    await s.clock.advance(0);
    await s.close();
    expect(s.batches.map((batch) => batch.length)).toEqual([10, 10, 10]);
  });

  it("repeats a failed batch unchanged, before later lines", async () => {
    let failures = 1;
    const s = setup(async () => {
      if (failures-- > 0) throw new Error("503");
    });
    s.log.add("one", "stdout");
    await s.clock.advance(500);
    s.log.add("two", "stdout");
    await s.clock.advance(1_000);
    expect(s.batches.flat().map((entry) => [entry.sequence, entry.text])).toEqual([
      [0, "one\n"],
      [1, "two\n"],
    ]);
  });

  it("drops the oldest lines above its limit and marks their place", async () => {
    let refuse = true;
    const s = setup(async () => {
      if (refuse) throw new Error("503");
    });
    const lines = Math.ceil((logBacklogBytesMax * 1.5) / 200);
    for (let line = 0; line < lines; line++) s.log.add(`${line} `.padEnd(199, "."), "stdout");
    await s.clock.advance(500);
    refuse = false;
    await s.close();
    await s.end(true);
    const entries = s.batches.flat();
    expect(entries[0]?.text).toMatch(/^\[longshore: dropped \d+ log lines here/);
    expect(entries.at(-1)?.text.startsWith(`${lines - 1} `)).toBe(true);
    const sequences = entries.map((entry) => entry.sequence);
    expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    expect(new Set(sequences).size).toBe(sequences.length);
    expect(s.dropped[0]).toBe(lines - (entries.length - 1));
  });

  it("gives up at the end after one failure, and counts the lost lines", async () => {
    const s = setup(() => Promise.reject(new Error("503")));
    s.log.add("one", "stdout");
    s.log.add("two", "stdout");
    await s.close();
    await s.end(false);
    expect(s.dropped).toEqual([2]);
  });

  it("tries once more after the report to send lines that could not be sent before it", async () => {
    let away = true;
    let tries = 0;
    const s = setup(async () => {
      tries++;
      if (away) throw new Error("503");
    });
    s.log.add("one", "stdout");
    await s.close();
    expect(tries).toBe(1);
    away = false;
    await s.end(true);
    expect(s.texts()).toEqual([["one\n"]]);
    expect(s.dropped).toEqual([]);
  });

  it("does not try again when the report also got no response", async () => {
    let tries = 0;
    const s = setup(async () => {
      tries++;
      throw new Error("503");
    });
    s.log.add("one", "stdout");
    await s.close();
    await s.end(false);
    expect(tries).toBe(1);
    expect(s.dropped).toEqual([1]);
  });

  it("waits only for a limited time at the end when a push hangs", async () => {
    const s = setup(() => new Promise(() => {}));
    s.log.add("one", "stdout");
    const closed = s.close();
    await s.clock.advance(5_000);
    await closed;
    await s.end(true);
    expect(s.clock.pending).toBe(0);
  });

  it("divides a text that is larger than a batch into pieces without a loss", async () => {
    const s = setup();
    s.log.add("ä".repeat(3_000), "stdout");
    await s.close();
    expect(
      s.batches
        .flat()
        .map((entry) => entry.text)
        .join(""),
    ).toBe(`${"ä".repeat(3_000)}\n`);
    for (const batch of s.batches) expect(Buffer.byteLength(batch.map((entry) => entry.text).join(""))).toBeLessThanOrEqual(1_000);
  });
});
