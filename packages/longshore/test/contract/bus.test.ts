// The embedded bus: the bus contract, and behaviour that only a data file can show.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { EmbeddedBus } from "../../src/bus/embedded-bus.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { Quotas } from "../../src/core/quotas.ts";
import { LocalBus } from "../../src/engine/bus/local-bus.ts";
import { GroupCommit } from "../../src/engine/commit.ts";
import type { RowStore } from "../../src/engine/rows.ts";
import { StoredBytes } from "../../src/engine/stored-bytes.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { until } from "../support/until.ts";
import { busSuite } from "./bus-suite.ts";
import { missingRows } from "./missing-rows.ts";

interface LogOptions {
  clock?: TestClock;
  topicRecordsMax?: number;
  quotas?: Partial<Quotas>;
  /** The rows of the log, instead of the rows in memory. */
  wrap?: (rows: RowStore) => RowStore;
}

async function openLog(file = ":memory:", options: LogOptions = {}) {
  const clock = options.clock ?? systemClock;
  const db = await openDatabase(file, { synchronous: "NORMAL" });
  migrate(db);
  const { wrap = (rows) => rows, quotas, topicRecordsMax } = options;
  const store = wrap(sqliteRows(db, () => null));
  const commit = new GroupCommit(store, () => clock.now());
  const log = new LocalBus({ store, commit, stored: new StoredBytes(store, commit, quotas), topicRecordsMax, clock });
  await log.recover();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await commit.close();
    db.close();
  };
  onTestFinished(close);
  const kept = () => Number(db.prepare("SELECT count(*) AS count FROM bus_record").get()?.count);
  return { log, close, kept, commit };
}

const wraps = [
  ["the rows at hand", undefined],
  ["rows that are read later", (rows: RowStore) => missingRows(rows)],
] as const;

describe.each(wraps)("the embedded bus on %s", (_name, wrap) => {
  busSuite(async () => {
    const { log } = await openLog(":memory:", { wrap });
    return { prefix: `t${randomUUID().slice(0, 8)}.`, open: async () => new EmbeddedBus(log, { againMs: 1 }) };
  });

  it("commits records together that arrive together", async () => {
    const { log, commit } = await openLog(":memory:", { wrap });
    const bus = new EmbeddedBus(log);
    await Promise.all(Array.from({ length: 100 }, (_, at) => bus.publish([{ topic: "a", key: "k", value: String(at) }])));
    expect(commit.commits).toBe(1);
  });
});

describe.each(wraps)("the log of the embedded bus on %s", (_name, wrap) => {
  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), "longshore-bus-"));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    return join(path, "bus.db");
  }
  const records = (count: number, topic = "a") => Array.from({ length: count }, (_, at) => ({ topic, key: "k", value: String(at) }));
  const valuesOf = (taken: { records: readonly { value: Uint8Array }[] } | null) =>
    taken?.records.map(({ value }) => Number(Buffer.from(value).toString()));

  it("hands out unfinished records after a restart, and no others", async () => {
    const file = folder();
    const before = await openLog(file, { wrap });
    await before.log.join("g", ["a"], "earliest");
    await before.log.append(records(10));
    const first = await before.log.take({ group: "g", member: "m", topics: ["a"], max: 3 });
    const second = await before.log.take({ group: "g", member: "m", topics: ["a"], max: 3 });
    expect([valuesOf(first), valuesOf(second)]).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    // The second is done before the first.
    expect(await before.log.commit("m", second?.id ?? 0)).toBe(true);
    await before.close();

    const after = await openLog(file, { wrap });
    expect(valuesOf(await after.log.take({ group: "g", member: "m", topics: ["a"], max: 5 }))).toEqual([0, 1, 2, 6, 7]);
    expect(valuesOf(await after.log.take({ group: "g", member: "m", topics: ["a"], max: 5 }))).toEqual([8, 9]);
    expect(await after.log.take({ group: "g", member: "m", topics: ["a"], max: 5 })).toBe(null);
  });

  it("removes records that every group has finished, and continues the numbers after a restart", async () => {
    const file = folder();
    const before = await openLog(file, { wrap });
    await before.log.join("g1", ["a"], "earliest");
    await before.log.join("g2", ["a"], "earliest");
    await before.log.append(records(4));
    for (const group of ["g1", "g2"]) {
      const taken = await before.log.take({ group, member: "m", topics: ["a"], max: 10 });
      expect(before.kept()).toBe(4);
      await before.log.commit("m", taken?.id ?? 0);
    }
    expect(before.kept()).toBe(0);
    await before.close();
    const after = await openLog(file, { wrap });
    await after.log.append(records(1));
    const taken = await after.log.take({ group: "g1", member: "m", topics: ["a"], max: 10 });
    expect(taken?.records.map(({ place }) => place)).toEqual(["a@5"]);
  });

  it("stores no more unread records than its limit, and accepts records again below it", async () => {
    const { log, kept } = await openLog(":memory:", { wrap, topicRecordsMax: 10 });
    await log.join("g", ["a"], "earliest");
    for (let round = 0; round < 4; round++) await log.append(records(5));
    expect(kept()).toBe(10);
    expect((await log.take({ group: "g", member: "m", topics: ["a"], max: 100 }))?.records.length).toBe(10);
  });

  it("removes long records a few at a time", async () => {
    const { log, kept } = await openLog(":memory:", { wrap });
    await log.join("g", ["a"], "earliest");
    const append = (value: string) => log.append([{ topic: "a", key: null, value }]);
    const take = async () => (await log.take({ group: "g", member: "m", topics: ["a"], max: 100 }))?.id as number;
    for (let at = 0; at < 12; at++) await append("x".repeat(900_000));
    const taken = [await take(), await take(), await take()];
    // The first record is done last, so all of them become removable at once.
    for (const id of taken.reverse()) await log.commit("m", id);
    expect(kept()).toBe(8);
    for (const left of [5, 0]) {
      await append("short");
      await log.commit("m", await take());
      expect(kept()).toBe(left);
    }
  });

  it("removes records that are too old, in any position, when there is no room", async () => {
    const clock = new TestClock(1_700_000_000_000);
    const { log, kept } = await openLog(":memory:", { wrap, clock, quotas: { busBytes: 2_000 } });
    const publish = (topic: string) => log.append([{ topic, key: null, value: "x".repeat(800) }], "guest");
    await publish("a");
    await publish("b");
    await expect(publish("c")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    clock.jump(8 * 24 * 3_600_000);
    // The refusal makes room.
    await expect(publish("c")).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    expect(kept()).toBe(0);
    await publish("c");
    expect(kept()).toBe(1);
  });

  it("removes records that are too old, and abandoned groups", async () => {
    const clock = new TestClock(1_700_000_000_000);
    const { log, kept } = await openLog(":memory:", { wrap, clock });
    await log.join("old", ["a"], "earliest");
    await log.append(records(3));
    await clock.advance(8 * 24 * 3_600_000);
    await log.append(records(1));
    expect(kept()).toBe(1);
    await log.join("new", ["a"], "earliest");
    expect(await log.take({ group: "old", member: "m", topics: ["a"], max: 9 })).toBe(null);
    expect(valuesOf(await log.take({ group: "new", member: "m", topics: ["a"], max: 9 }))).toEqual([0]);
  });

  it("returns false to a member that commits a record that it does not have", async () => {
    const { log } = await openLog(":memory:", { wrap });
    await log.join("g", ["a"], "earliest");
    await log.append(records(1));
    const taken = await log.take({ group: "g", member: "m", topics: ["a"], max: 9 });
    expect(await log.commit("other", taken?.id ?? 0)).toBe(false);
    log.release("m");
    expect(await log.commit("m", taken?.id ?? 0)).toBe(false);
    expect(valuesOf(await log.take({ group: "g", member: "other", topics: ["a"], max: 9 }))).toEqual([0]);
  });

  it("wakes watchers when records arrive or are returned", async () => {
    const { log } = await openLog(":memory:", { wrap });
    let woken = 0;
    const end = log.watch(["a"], () => woken++);
    await log.join("g", ["a"], "earliest");
    await log.append(records(1));
    expect(woken).toBe(1);
    await log.take({ group: "g", member: "m", topics: ["a"], max: 9 });
    log.release("m");
    expect(woken).toBe(2);
    end();
    await log.append(records(1));
    expect(woken).toBe(2);
  });

  it("refuses too many records at once", async () => {
    const { log } = await openLog(":memory:", { wrap });
    await expect(log.append(records(5_001))).rejects.toMatchObject({ code: "LONGSHORE_LIMIT", message: expect.stringContaining("5001") });
    const bus = new EmbeddedBus(log);
    await bus.publish(records(5_001));
    let count = 0;
    const handle = async (some: readonly unknown[]) => {
      count += some.length;
    };
    const consumer = bus.subscribe({ group: "g", topics: ["a"], from: "earliest", handle });
    await until(() => count === 5_001);
    await consumer.close();
  });
});
