// A Kafka consumer group with a member that fails or ends during an operation. Sessions are longer than any test, so a test that waited for
// the end of a session would not end.
import { describe, expect, it, onTestFinished } from "vitest";
import { loadKafka } from "../../../src/bus/kafka/client.ts";
import { KafkaConsumer } from "../../../src/bus/kafka/consumer.ts";
import { KafkaTopics } from "../../../src/bus/kafka/topics.ts";
import { openKafkaBus } from "../../../src/bus/kafka.ts";
import type { BusRecord } from "../../../src/core/bus/bus.ts";
import { kafkaMissing, sharedKafka } from "../../support/kafka.ts";
import { deferred, untilElsewhere as until } from "../../support/until.ts";

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at);
const endless = { sessionMs: 600_000, beatMs: 100 };

async function setup() {
  const { brokers, prefix } = await sharedKafka();
  const [topic, group] = [`${prefix}t`, `${prefix}g`];
  const told: string[] = [];
  const trouble = { failing: (what: string, error: unknown) => void told.push(`${what}: ${String(error)}`), working: () => {} };
  const options = { brokers, partitions: 4, againMs: 10, trouble, ...endless };
  const bus = await openKafkaBus(options);
  onTestFinished(() => bus.close());
  await bus.ensure([topic]);
  const publish = (values: readonly number[]) => bus.publish(values.map((at) => ({ topic, key: `k${at}`, value: String(at) })));
  const numbers: number[] = [];
  const subscription = {
    group,
    topics: [topic],
    from: "earliest" as const,
    handle: async (records: readonly BusRecord[]) =>
      void numbers.push(...records.map(({ value }) => Number(Buffer.from(value).toString()))),
  };
  return { bus, options, subscription, publish, numbers, told };
}

type World = Awaited<ReturnType<typeof setup>>;

/** A consumer whose first request of one kind gets an error. */
async function failingOnce({ bus, options, subscription }: World, method: "listOffsets" | "listCommittedOffsets", error: Error) {
  const kafka = await loadKafka();
  let failures = 1;
  const Consumer = new Proxy(kafka.Consumer, {
    construct(made, args) {
      const client = Reflect.construct(made, args) as InstanceType<typeof made>;
      const asked = client[method].bind(client) as (question: never) => Promise<never>;
      return Object.assign(client, { [method]: (question: never) => (failures-- > 0 ? Promise.reject(error) : asked(question)) });
    },
  });
  const topics = new KafkaTopics(kafka, options, new AbortController().signal);
  const consumer = new KafkaConsumer({ kafka: { ...kafka, Consumer }, options, topics, name: bus.name }, subscription);
  onTestFinished(() => consumer.close());
  return { consumer, failed: () => failures < 1 };
}

describe.skipIf(kafkaMissing !== undefined)(`groups on Kafka${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it("a member that begins again after an error keeps its name, and the group does not wait for its old session", async () => {
    const world = await setup();
    const { failed } = await failingOnce(world, "listCommittedOffsets", new Error("not now"));
    await world.publish([1, 2, 3]);
    await until(() => world.numbers.length === 3);
    expect(failed()).toBe(true);
    expect(world.told).toContainEqual(expect.stringMatching(/^taking .*not now/));
  });

  it("a request to a broker that does not know its partitions yet is repeated, and no failure is reported", async () => {
    const world = await setup();
    const stale = Object.assign(new Error("not the leader"), {
      findBy: (property: string) => (property === "hasStaleMetadata" ? {} : null),
    });
    const { failed } = await failingOnce(world, "listOffsets", stale);
    await world.publish([1, 2, 3]);
    await until(() => world.numbers.length === 3);
    expect(failed()).toBe(true);
    expect(world.told).not.toContainEqual(expect.stringMatching(/^taking .*not the leader/));
  });

  it("a member that is closed while it joins leaves the group", async () => {
    const { bus, options, subscription, publish, numbers } = await setup();
    const [begun, finish] = [deferred<void>(), deferred<void>()];
    const busy = bus.subscribe({
      ...subscription,
      async handle(records) {
        begun.resolve();
        await finish.promise;
        await subscription.handle(records);
      },
    });
    await busy.ready;
    await publish([0]);
    await begun.promise;
    // The group waits for it, so the other member's join gets no response.
    const other = await openKafkaBus(options);
    const joining = other.subscribe(subscription);
    joining.ready.catch(() => {});
    const state = await groupStates(options.brokers);
    await until(async () => /preparing/i.test(await state(subscription.group)));
    await other.close();
    finish.resolve();
    await publish(Array.from({ length: 40 }, (_, at) => at + 1));
    await until(() => numbers.length === 41);
    await busy.close();
  });

  it("loses no record after an offset beyond the end, as after a topic was recreated or an operator moved a group", async () => {
    const { bus, options, subscription, publish, numbers } = await setup();
    const kafka = await loadKafka();
    const [topic] = subscription.topics as [string];
    await bus.ensure([topic]);
    await publish(range(0, 40));
    const mover = new kafka.Consumer({ clientId: "mover", bootstrapBrokers: [...options.brokers], groupId: subscription.group });
    const beyond = range(0, 4).map((partition) => ({ topic, partition, offset: 25n, leaderEpoch: -1 }));
    await mover.joinGroup({});
    await mover.commit({ offsets: beyond });
    await mover.leaveGroup();
    await mover.close();
    const first = bus.subscribe(subscription);
    await until(() => new Set(numbers).size === 40);
    await first.close();
    // The logs grow beyond the wrong offset while the group is not running.
    await publish(range(40, 400));
    const second = bus.subscribe(subscription);
    await until(() => numbers.includes(399));
    await until(() => new Set(numbers).size === 400);
    await second.close();
    expect(new Set(numbers).size).toBe(400);
  });
});

/** Requests the state of groups from the broker. */
async function groupStates(brokers: readonly string[]): Promise<(group: string) => Promise<string>> {
  const { Admin } = await loadKafka();
  const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
  onTestFinished(() => admin.close());
  return async (group) => String((await admin.describeGroups({ groups: [group] })).get(group)?.state);
}
