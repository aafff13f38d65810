// Topics that members of a group share: with one partition, as a broker makes them by itself, one member would get everything.
import { Admin } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { type KafkaModule, loadKafka } from "../../../src/bus/kafka/client.ts";
import { KafkaTopics } from "../../../src/bus/kafka/topics.ts";
import { kafkaMissing, sharedKafka } from "../../support/kafka.ts";
import { untilElsewhere as until } from "../../support/until.ts";

async function setup(change: (kafka: KafkaModule) => KafkaModule = (kafka) => kafka) {
  const { brokers, prefix } = await sharedKafka();
  const told: string[] = [];
  const trouble = { failing: (_what: string, error: unknown) => void told.push(String(error)), working: () => {} };
  const topics = new KafkaTopics(change(await loadKafka()), { brokers, trouble }, new AbortController().signal);
  const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
  onTestFinished(() => admin.close());
  const topic = `${prefix}cmd`;
  /** A broker hears of a new topic and of new partitions a moment after they were made. */
  const becomes = (count: number) =>
    until(() =>
      admin.metadata({ topics: [topic], forceUpdate: true }).then(
        ({ topics }) => topics.get(topic)?.partitionsCount === count,
        () => false,
      ),
    );
  return { topics, topic, admin, becomes, told };
}

describe.skipIf(kafkaMissing !== undefined)(`a topic${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it("that another has made with one partition gets as many as we make, and more when more members share it", async () => {
    const { topics, topic, admin, becomes, told } = await setup();
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
    await becomes(1);
    await topics.ensure([topic]);
    await becomes(1);
    await topics.ensure([topic], { sharedBy: 2 });
    await becomes(8);
    await topics.ensure([topic], { sharedBy: 11 });
    await topics.ensure([topic], { sharedBy: 3 });
    await becomes(11);
    expect(told).toEqual([]);
  });

  it("that is made in the very moment between the look for it and its creation gets them, too", async () => {
    let made: Promise<string[]> | undefined;
    const { topics, topic, admin, becomes } = await setup((kafka) => ({
      ...kafka,
      Admin: class extends kafka.Admin {
        override listTopics(): Promise<string[]> & undefined {
          made ??= admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 }).then(() => []);
          return made as Promise<string[]> & undefined;
        }
      } as typeof kafka.Admin,
    }));
    // As the coordinator does: until the broker knows what it has just made.
    await until(() =>
      topics.ensure([topic], { sharedBy: 1 }).then(
        () => true,
        () => false,
      ),
    );
    await becomes(8);
  });

  it("that may not get more is reported with what to do, again for each member that comes, and used as it is", async () => {
    const { topics, topic, admin, becomes, told } = await setup((kafka) => ({
      ...kafka,
      Admin: class extends kafka.Admin {
        override createPartitions(): Promise<void> & undefined {
          return Promise.reject(new Error("not allowed")) as unknown as Promise<void> & undefined;
        }
      } as typeof kafka.Admin,
    }));
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
    await becomes(1);
    await topics.ensure([topic], { sharedBy: 1 });
    await topics.ensure([topic], { sharedBy: 2 });
    await becomes(1);
    expect(told).toHaveLength(2);
    expect(told[0]).toMatch(/has 1 of 8 partitions, so one worker gets all .* not allowed\. Add them with kafka-topics\.sh --alter/);
  });
});
