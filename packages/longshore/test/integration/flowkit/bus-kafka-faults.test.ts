// Faults of the bus on Kafka: brokers that die, freeze or refuse, members that join and leave.
import { Admin } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { type KafkaBusOptions, openKafkaBus } from "../../../src/bus/kafka.ts";
import type { Bus, BusRecord } from "../../../src/core/bus/bus.ts";
import { kafkaMissing, ownKafka, sharedKafka, soonHeard } from "../../support/kafka.ts";
import { untilElsewhere as until } from "../../support/until.ts";

/** Two starts of a broker: five seconds each on an idle machine, and forty on a busy one. */
const brokerTestMs = 180_000;

async function open(options: KafkaBusOptions): Promise<Bus> {
  const bus = await openKafkaBus({ partitions: 4, againMs: 20, ...soonHeard, ...options });
  onTestFinished(() => bus.close());
  return bus;
}

/** Publishes numbers one after the other, each repeated until it is accepted. */
async function publishAll(bus: Bus, topic: string, from: number, to: number): Promise<void> {
  for (let number = from; number < to; number++) {
    for (let taken = false; !taken; ) {
      taken = await bus.publish([{ topic, key: `k${number % 5}`, value: String(number) }]).then(
        () => true,
        () => false,
      );
    }
  }
}

const numberOf = ({ value }: BusRecord) => Number(Buffer.from(value).toString());
const range = (count: number) => Array.from({ length: count }, (_, at) => at);

describe.skipIf(kafkaMissing !== undefined)(`Kafka's bad days${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it(
    "loses nothing when its broker is killed and frozen, and reports this once",
    async () => {
      const kafka = await ownKafka();
      const news: string[] = [];
      const trouble = {
        failing: (what: string) => news.includes(what) || news.push(what),
        working: (what: string) => news.includes(what) && news.push(`over: ${what}`),
      };
      const bus = await open({ brokers: [kafka.broker], trouble, patienceMs: 2_000 });
      const numbers: number[] = [];
      const consumer = bus.subscribe({
        group: "g",
        topics: ["t"],
        from: "earliest",
        handle: async (records) => void numbers.push(...records.map(numberOf)),
      });
      await consumer.ready;
      await publishAll(bus, "t", 0, 20);

      await kafka.down("SIGKILL");
      const second = publishAll(bus, "t", 20, 40);
      await until(() => news.some((what) => what.startsWith("publishing")) && news.some((what) => what.startsWith("taking")));
      await kafka.up();
      await second;

      kafka.freeze();
      const third = publishAll(bus, "t", 40, 60);
      await new Promise((resolve) => setImmediate(resolve));
      kafka.thaw();
      await third;

      await until(() => new Set(numbers).size === 60);
      expect([...new Set(numbers)].sort((a, b) => a - b)).toEqual(range(60));
      for (const key of range(5)) {
        const first = [...new Set(numbers.filter((number) => number % 5 === key))];
        expect(first).toEqual([...first].sort((a, b) => a - b));
      }
      expect(news.some((what) => what.startsWith("over: publishing"))).toBe(true);
      await consumer.close();
    },
    brokerTestMs,
  );

  it("hands every record to one member only while members join and leave", async () => {
    const { brokers, prefix } = await sharedKafka();
    const topic = `${prefix}t`;
    const bus = await open({ brokers });
    await bus.ensure([topic]);
    const numbers: number[] = [];
    const join = () =>
      bus.subscribe({
        group: `${prefix}g`,
        topics: [topic],
        from: "earliest",
        maxRecords: 3,
        async handle(records) {
          await new Promise((resolve) => setImmediate(resolve));
          numbers.push(...records.map(numberOf));
        },
      });
    const first = join();
    await first.ready;
    let published = 0;
    let stop = false;
    const publishing = (async () => {
      for (; !stop; published += 10) {
        await bus.publish(range(10).map((at) => ({ topic, key: `k${at}`, value: String(published + at) })));
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    })();
    const second = join();
    await second.ready;
    const third = join();
    await third.ready;
    await second.close();
    await first.close();
    stop = true;
    await publishing;
    await until(() => numbers.length >= published);
    expect(numbers.sort((a, b) => a - b)).toEqual(range(published));
    await third.close();
  });

  it.each([
    ["without readers", false],
    ["for a group that has read more partitions", true],
  ])("publishes to a topic that was made again with fewer partitions, %s", async (_name, isRead) => {
    const { brokers, prefix } = await sharedKafka();
    const [topic, group] = [`${prefix}shrinks`, `${prefix}g`];
    const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
    onTestFinished(() => admin.close());
    await admin.createTopics({ topics: [topic], partitions: 8, replicas: 1 });
    const bus = await open({ brokers, partitions: 1, patienceMs: 2_000, ...(isRead ? { readersOf: () => group } : {}) });
    if (isRead) {
      const reader = await open({ brokers, partitions: 1 });
      await reader.subscribe({ group, topics: [topic], from: "earliest", handle: async () => {} }).ready;
    }
    const publish = () => bus.publish(range(40).map((at) => ({ topic, key: `k${at}`, value: String(at) })));
    await publish();
    await admin.deleteTopics({ topics: [topic] });
    await until(async () => !(await admin.listTopics()).includes(topic));
    await admin.createTopics({ topics: [topic], partitions: 2, replicas: 1 });
    await until(() =>
      publish().then(
        () => true,
        () => false,
      ),
    );
  });

  it("reads partitions that are added while it runs, from their beginning", async () => {
    const { brokers, prefix } = await sharedKafka();
    const topic = `${prefix}grows`;
    const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
    onTestFinished(() => admin.close());
    const numbers: number[] = [];
    for (const bus of [await open({ brokers, lookMs: 50, partitions: 1 }), await open({ brokers, lookMs: 50, partitions: 1 })]) {
      const handle = async (records: readonly BusRecord[]) => void numbers.push(...records.map(numberOf));
      // A reader that begins with the newest record must not miss records of a new partition from before it noticed the partition.
      await bus.subscribe({ group: `${prefix}g`, topics: [topic], from: "latest", handle }).ready;
    }
    await admin.createPartitions({ topics: [{ name: topic, count: 4 }] });
    // A consumer that has not known the topic before.
    const publisher = await open({ brokers });
    await publishAll(publisher, topic, 0, 40);
    await until(() => numbers.length >= 40);
    expect(numbers.sort((one, other) => one - other)).toEqual(range(40));
  });

  it("rejects after its maximum wait when there is no broker, with its address", async () => {
    const bus = await open({ brokers: ["127.0.0.1:1"], patienceMs: 50 });
    await expect(bus.publish([{ topic: "t", key: null, value: "" }])).rejects.toMatchObject({
      code: "LONGSHORE_UNREACHABLE",
      message: expect.stringContaining("Kafka at 127.0.0.1:1"),
    });
  });

  it("[A23] refuses a record above a topic's limit with its size, and sends those of other calls", async () => {
    const { brokers, prefix } = await sharedKafka();
    const topic = `${prefix}small`;
    const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1, configs: [{ name: "max.message.bytes", value: "2000" }] });
    await admin.close();
    const bus = await open({ brokers });
    const publish = (value: string) => bus.publish([{ topic, key: "k", value }]);
    const results = await Promise.allSettled([publish("1"), publish("x".repeat(5_000)), publish("2")]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((results[1] as PromiseRejectedResult).reason).toMatchObject({
      code: "LONGSHORE_LIMIT",
      message: expect.stringMatching(/has 5001 bytes.*max\.message\.bytes/),
    });
    // A call whose records are too large together is sent in parts.
    await bus.publish(range(10).map(() => ({ topic, key: "k", value: "y".repeat(900) })));
    const lengths: number[] = [];
    const consumer = bus.subscribe({
      group: `${prefix}g`,
      topics: [topic],
      from: "earliest",
      handle: async (records) => void lengths.push(...records.map(({ value }) => value.byteLength)),
    });
    await until(() => lengths.length === 12);
    expect(lengths).toEqual([1, 1, ...range(10).map(() => 900)]);
    await consumer.close();
  });

  it("refuses to open without a broker", async () => {
    await expect(openKafkaBus({ brokers: [] })).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG", detail: { field: "brokers" } });
  });
});
