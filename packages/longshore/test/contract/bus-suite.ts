// The contract of a bus, for every implementation. Each test uses different names, so that tests can share a broker.
import { expect, it } from "vitest";
import type { Bus, BusConsumer, BusRecord, Outgoing } from "../../src/core/bus/bus.ts";
import { deferred, untilElsewhere as until } from "../support/until.ts";

export interface BusWorld {
  /** Different from the names of every other test. */
  readonly prefix: string;
  /** Another bus on the same records, as in another process. */
  open(): Promise<Bus>;
}

const text = new TextDecoder();

/** `setup` registers its own end. */
export function busSuite(setup: () => Promise<BusWorld>): void {
  async function world(topics = ["a"]) {
    const { prefix, open } = await setup();
    const bus = await open();
    await bus.ensure(topics.map((topic) => prefix + topic));
    const out = (topic: string, key: string | null, value: string): Outgoing => ({ topic: prefix + topic, key, value });
    const numbered = (count: number, key: (at: number) => string | null = () => "k") =>
      Array.from({ length: count }, (_, at) => out("a", key(at), String(at)));
    return { prefix, bus, open, out, numbered };
  }

  function collect(bus: Bus, group: string, topics: string[], more: { from?: "earliest" | "latest"; maxRecords?: number } = {}) {
    const records: BusRecord[] = [];
    const sizes: number[] = [];
    const consumer = bus.subscribe({
      group,
      topics,
      from: "earliest",
      async handle(some) {
        records.push(...some);
        sizes.push(some.length);
      },
      ...more,
    });
    return { consumer, records, sizes, values: () => records.map(({ value }) => text.decode(value)) };
  }

  it("passes every record on unchanged", async () => {
    const { prefix, bus, out } = await world();
    await bus.publish([
      out("a", "k", "one"),
      out("a", null, "zwei äöü"),
      { topic: `${prefix}a`, key: "", value: new Uint8Array([0, 255]) },
    ]);
    const { records, consumer } = collect(bus, `${prefix}g`, [`${prefix}a`]);
    await until(() => records.length === 3);
    const byValue = new Map(records.map((record) => [Buffer.from(record.value).toString("latin1"), record]));
    expect(byValue.get("one")).toMatchObject({ topic: `${prefix}a`, key: "k", place: expect.stringContaining(`${prefix}a`) });
    expect(byValue.get(Buffer.from("zwei äöü").toString("latin1"))?.key).toBe(null);
    expect(byValue.get("\u0000ÿ")?.key).toBe("");
    expect(records.every(({ at }) => at > 1_600_000_000_000)).toBe(true);
    await consumer.close();
  });

  it("keeps the order of a key through calls that arrive together", async () => {
    const { prefix, bus, out } = await world();
    const { records, consumer } = collect(bus, `${prefix}g`, [`${prefix}a`]);
    await Promise.all(Array.from({ length: 400 }, (_, at) => bus.publish([out("a", `k${at % 7}`, String(at))])));
    await until(() => records.length === 400);
    for (let key = 0; key < 7; key++) {
      const values = records.filter((record) => record.key === `k${key}`).map(({ value }) => Number(text.decode(value)));
      expect(values).toEqual([...values].sort((a, b) => a - b));
    }
    expect(new Set(records.map(({ value }) => text.decode(value))).size).toBe(400);
    await consumer.close();
  });

  it("starts a new group at the end when the option requests this, and never misses a record that arrives after it was ready", async () => {
    const { prefix, bus, numbered, out } = await world();
    await bus.publish(numbered(5));
    const { consumer, values, records } = collect(bus, `${prefix}g`, [`${prefix}a`], { from: "latest" });
    await consumer.ready;
    await bus.publish([out("a", "k", "later")]);
    await until(() => records.length > 0);
    expect(values()).toEqual(["later"]);
    await consumer.close();
  });

  it("gives every group all records", async () => {
    const { prefix, bus, numbered } = await world();
    const groups = ["g1", "g2"].map((group) => collect(bus, prefix + group, [`${prefix}a`]));
    await bus.publish(numbered(10));
    for (const { records, consumer } of groups) {
      await until(() => records.length === 10);
      await consumer.close();
    }
  });

  it("divides the records of a group among its members, each once", async () => {
    const { prefix, bus, open, numbered } = await world();
    const members = [bus, await open()].map((one) => collect(one, `${prefix}g`, [`${prefix}a`], { maxRecords: 5 }));
    for (const { consumer } of members) await consumer.ready;
    await bus.publish(numbered(200, (at) => `k${at}`));
    await until(() => members.reduce((sum, { records }) => sum + records.length, 0) >= 200);
    expect(members.flatMap(({ values }) => values().map(Number)).sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, at) => at));
    for (const { consumer } of members) await consumer.close();
  });

  it("passes on no more records at the same time than its limit", async () => {
    const { prefix, bus, numbered } = await world();
    await bus.publish(numbered(20));
    const { consumer, records, sizes } = collect(bus, `${prefix}g`, [`${prefix}a`], { maxRecords: 3 });
    await until(() => records.length === 20);
    expect(Math.max(...sizes)).toBe(3);
    await consumer.close();
  });

  it("delivers records again that could not be handled, in order", async () => {
    const { prefix, bus, numbered } = await world();
    await bus.publish(numbered(6));
    const seen: string[][] = [];
    let failures = 2;
    const consumer = bus.subscribe({
      group: `${prefix}g`,
      topics: [`${prefix}a`],
      from: "earliest",
      async handle(records) {
        if (failures-- > 0) throw new Error("not now");
        seen.push(records.map(({ value }) => text.decode(value)));
      },
    });
    await until(() => seen.flat().length === 6);
    expect(seen.flat()).toEqual(["0", "1", "2", "3", "4", "5"]);
    await consumer.close();
  });

  it("does not deliver finished records to the next reader", async () => {
    const { prefix, bus, open, numbered, out } = await world();
    await bus.publish(numbered(6));
    const first = collect(bus, `${prefix}g`, [`${prefix}a`], { maxRecords: 2 });
    await until(() => first.records.length === 6);
    await first.consumer.close();
    await bus.close();
    const other = await open();
    const next = collect(other, `${prefix}g`, [`${prefix}a`]);
    await next.consumer.ready;
    await other.publish([out("a", "k", "new")]);
    await until(() => next.records.length > 0);
    expect(next.values()).toEqual(["new"]);
    await next.consumer.close();
  });

  it("leaves unfinished records of a closed member to the others", async () => {
    const { prefix, bus, open, numbered } = await world();
    await bus.publish(numbered(4));
    const tried = deferred<void>();
    const consumer = bus.subscribe({
      group: `${prefix}g`,
      topics: [`${prefix}a`],
      from: "earliest",
      async handle() {
        tried.resolve();
        throw new Error("never");
      },
    });
    await tried.promise;
    await consumer.close();
    const next = collect(await open(), `${prefix}g`, [`${prefix}a`]);
    await until(() => next.records.length === 4);
    expect(next.values()).toEqual(["0", "1", "2", "3"]);
    await next.consumer.close();
  });

  it("waits for the running call when it closes, and counts it", async () => {
    const { prefix, bus, open, numbered, out } = await world();
    await bus.publish(numbered(1));
    const [begun, finish] = [deferred<void>(), deferred<void>()];
    const consumer = bus.subscribe({
      group: `${prefix}g`,
      topics: [`${prefix}a`],
      from: "earliest",
      handle() {
        begun.resolve();
        return finish.promise;
      },
    });
    await begun.promise;
    let closed = false;
    const closing = consumer.close().then(() => {
      closed = true;
    });
    await bus.publish([out("a", "k", "after")]);
    expect(closed).toBe(false);
    finish.resolve();
    await closing;
    const next = collect(await open(), `${prefix}g`, [`${prefix}a`]);
    await until(() => next.records.length > 0);
    expect(next.values()).toEqual(["after"]);
    await next.consumer.close();
  });

  it("delivers nothing to a paused consumer, and everything afterwards", async () => {
    const { prefix, bus, out } = await world();
    const values: string[] = [];
    const consumer: BusConsumer = bus.subscribe({
      group: `${prefix}g`,
      topics: [`${prefix}a`],
      from: "earliest",
      maxRecords: 1,
      async handle([record]) {
        values.push(text.decode(record?.value));
        consumer.pause();
      },
    });
    const witness = collect(bus, `${prefix}witness`, [`${prefix}a`]);
    await bus.publish([out("a", "k", "1"), out("a", "k", "2")]);
    await until(() => witness.records.length === 2 && values.length > 0);
    expect(values).toEqual(["1"]);
    consumer.resume();
    await until(() => values.length === 2);
    await consumer.close();
    await witness.consumer.close();
  });

  it("accepts further topics while it runs", async () => {
    const { prefix, bus, out } = await world(["a", "b"]);
    const { consumer, values, records } = collect(bus, `${prefix}g`, [`${prefix}a`]);
    await consumer.ready;
    await consumer.add([`${prefix}b`]);
    await bus.publish([out("a", "k", "a"), out("b", "k", "b")]);
    await until(() => records.length === 2);
    expect(values().sort()).toEqual(["a", "b"]);
    await consumer.close();
  });

  it("[A23] refuses a record that is too large with its size, and sends no record of that call", async () => {
    const { prefix, bus, out } = await world();
    const large = bus.publish([out("a", "k", "small"), out("a", "k", "x".repeat(1_000_000))]);
    await expect(large).rejects.toMatchObject({
      code: "LONGSHORE_LIMIT",
      message: expect.stringMatching(/1000001 bytes; at most 1000000/),
      detail: { field: "records[1].value" },
    });
    await bus.publish([out("a", "k", "x".repeat(999_999))]);
    const { consumer, records } = collect(bus, `${prefix}g`, [`${prefix}a`]);
    await until(() => records.length > 0);
    expect(records.map(({ value }) => value.byteLength)).toEqual([999_999]);
    await consumer.close();
  });

  it("refuses a name that no topic can have", async () => {
    const { bus } = await world();
    await expect(bus.publish([{ topic: "no spaces", key: null, value: "" }])).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
    await expect(bus.ensure(["a/b"])).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
  });

  it("refuses everything after its close, which may be called twice", async () => {
    const { bus, out } = await world();
    await bus.close();
    await bus.close();
    await expect(bus.publish([out("a", "k", "1")])).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
    expect(() => bus.subscribe({ group: "g", topics: ["a"], from: "latest", handle: async () => {} })).toThrow("closed");
  });
}
