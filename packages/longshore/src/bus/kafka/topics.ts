// Topics on Kafka: found, or created. Whoever may not create them can still use those that are there.

import { LongshoreError } from "../../errors.ts";
import { checkTopic } from "../check.ts";
import { clientOptions, hangUp, type KafkaModule, messageOf, named, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

/** As many members of a group can work at once; more cost every broker and every rebalance a little. */
const partitionsDefault = 8;
/** The brokers' own default. */
const replicasDefault = -1;

export class KafkaTopics {
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #closing: AbortSignal;
  readonly #known = new Set<string>();

  constructor(kafka: KafkaModule, options: KafkaBusOptions, closing: AbortSignal) {
    this.#kafka = kafka;
    this.#options = options;
    this.#closing = closing;
  }

  /** Somebody was told that a topic is not there. */
  forget(topics: Iterable<string>): void {
    for (const topic of topics) this.#known.delete(topic);
  }

  async ensure(topics: readonly string[]): Promise<void> {
    for (const topic of topics) checkTopic(topic);
    const asked = topics.filter((topic) => !this.#known.has(topic));
    if (asked.length === 0) return;
    const admin = new this.#kafka.Admin(clientOptions(this.#options));
    try {
      const there = new Set(await within(requestMsMax, admin.listTopics(), this.#closing));
      for (const topic of asked) if (!there.has(topic)) await this.#create(admin, topic);
      for (const topic of asked) this.#known.add(topic);
    } finally {
      await hangUp(admin);
    }
  }

  async #create(admin: InstanceType<KafkaModule["Admin"]>, topic: string): Promise<void> {
    const { partitions = partitionsDefault, replicas = replicasDefault } = this.#options;
    try {
      await within(requestMsMax, admin.createTopics({ topics: [topic], partitions, replicas }), this.#closing);
    } catch (error) {
      if (named(error, "TOPIC_ALREADY_EXISTS") !== undefined) return;
      if (named(error, "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "POLICY_VIOLATION") === undefined) throw error;
      throw new LongshoreError(
        "LONGSHORE_UNAUTHORIZED",
        `The topic ${topic} is not there and may not be created: ${messageOf(error)}. Create it with ${partitions} partitions.`,
        { cause: error },
      );
    }
  }
}
