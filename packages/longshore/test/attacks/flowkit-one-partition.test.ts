// Only one worker of a role gets commands. A broker with default settings creates a topic with one partition when a program first names it,
// and workers name the topic of their commands. The members of a group share the partitions, so one worker got all commands of its role, and
// nothing reported this.

import { Admin } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { type KafkaModule, loadKafka } from "../../src/bus/kafka/client.ts";
import { KafkaTopics } from "../../src/bus/kafka/topics.ts";
import type { Bus, EnsureOptions } from "../../src/core/bus/bus.ts";
import { openFlowkit } from "../support/flowkit-world.ts";
import { kafkaMissing, sharedKafka } from "../support/kafka.ts";
import { untilElsewhere as until } from "../support/until.ts";

async function broker(change: (kafka: KafkaModule) => KafkaModule = (kafka) => kafka) {
  const { brokers, prefix } = await sharedKafka();
  const told: string[] = [];
  const trouble = { failing: (_what: string, error: unknown) => void told.push(String(error)), working: () => {} };
  const topics = new KafkaTopics(change(await loadKafka()), { brokers, trouble }, new AbortController().signal);
  const admin = new Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
  onTestFinished(() => admin.close());
  const topic = `${prefix}cmd`;
  /** A broker knows a new topic and new partitions a moment after they were created. */
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
  it("that another program has created with one partition gets as many as ours, and more when more members share it", async () => {
    const { topics, topic, admin, becomes, told } = await broker();
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

  it("that another program creates between our check and our creation also gets them", async () => {
    let made: Promise<string[]> | undefined;
    const { topics, topic, admin, becomes } = await broker((kafka) => ({
      ...kafka,
      Admin: class extends kafka.Admin {
        override listTopics(): Promise<string[]> & undefined {
          made ??= admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 }).then(() => []);
          return made as Promise<string[]> & undefined;
        }
      } as typeof kafka.Admin,
    }));
    // As the coordinator does: repeated until the broker knows the topic that it has just created.
    await until(() =>
      topics.ensure([topic], { sharedBy: 1 }).then(
        () => true,
        () => false,
      ),
    );
    await becomes(8);
  });

  it("that cannot get more is reported with what to do, again for each new member, and is used unchanged", async () => {
    const { topics, topic, admin, becomes, told } = await broker((kafka) => ({
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

async function coordinator(said: (options: EnsureOptions, topic: string) => void = () => {}) {
  const asked: { topic: string; sharedBy: number | undefined }[] = [];
  const bus = (own: Bus): Bus => ({
    name: own.name,
    publish: (records) => own.publish(records),
    subscribe: (subscription) => own.subscribe(subscription),
    ensure: async (topics, options = {}) => {
      for (const topic of topics) {
        asked.push({ topic, sharedBy: options.sharedBy });
        said(options, topic);
      }
      await own.ensure(topics);
    },
    close: () => own.close(),
  });
  const world = await openFlowkit({ bus, config: { worker_types: ["indexer"] } });
  /** The number of workers of each request for a topic. */
  const sharedBy = (topic: string) => asked.filter((one) => one.topic === topic && one.sharedBy !== undefined).map((one) => one.sharedBy);
  return { world, asked, sharedBy };
}

it("the topic of a role is requested at the start, and for each new worker", async () => {
  const { world, asked, sharedBy } = await coordinator();
  expect(sharedBy("cmd.indexer.v1")).toEqual([0]);
  for (let count = 1; count <= 3; count++) {
    await world.worker(`w${count}`, ["indexer"]);
    await world.until(async () => sharedBy("cmd.indexer.v1").includes(count));
  }
  // Events of one attempt must stay in order, so that topic never gets more partitions.
  expect(asked.filter(({ topic }) => topic === "status.indexer.v1").every((one) => one.sharedBy === undefined)).toBe(true);
});

it("a topic that had too few partitions is named in a warning", async () => {
  const { world } = await coordinator(({ widened }, topic) => widened?.(topic, 1, 8));
  expect(world.warnings.join()).toContain("The topic cmd.indexer.v1 had 1 of 8 partitions, so at most 1 workers were given its commands");
});
