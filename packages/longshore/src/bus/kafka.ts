// The bus for installations with Kafka.

import type { Bus, BusConsumer, EnsureOptions, Outgoing, Subscription } from "../core/bus/bus.ts";
import { LongshoreError } from "../core/errors.ts";
import { type KafkaModule, loadKafka } from "./kafka/client.ts";
import { KafkaConsumer } from "./kafka/consumer.ts";
import { KafkaGroups } from "./kafka/groups.ts";
import type { KafkaBusOptions } from "./kafka/options.ts";
import { KafkaPublisher } from "./kafka/producer.ts";
import { Shutdown } from "./kafka/shutdown.ts";
import { KafkaTopics } from "./kafka/topics.ts";

export type { KafkaBusOptions } from "./kafka/options.ts";

/**
 * Rejects with LONGSHORE_BAD_CONFIG when Kafka's client is not installed. Whether a broker is reachable is found out later, with retries.
 */
export async function openKafkaBus(options: KafkaBusOptions): Promise<Bus> {
  if (options.brokers.length === 0) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", "brokers is empty: name at least one Kafka broker as host:port.", {
      detail: { field: "brokers", expected: "host:port of at least one broker" },
    });
  }
  return new KafkaBus(await loadKafka(), options);
}

class KafkaBus implements Bus {
  readonly name: string;
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #topics: KafkaTopics;
  readonly #groups: KafkaGroups;
  readonly #publisher: KafkaPublisher;
  readonly #consumers = new Set<KafkaConsumer>();
  readonly #closing = new Shutdown();

  constructor(kafka: KafkaModule, options: KafkaBusOptions) {
    this.name = `Kafka at ${options.brokers.join(", ")}`;
    this.#kafka = kafka;
    this.#options = options;
    this.#topics = new KafkaTopics(kafka, options, this.#closing.begun);
    this.#groups = new KafkaGroups(kafka, options, this.#closing.begun);
    const [topics, groups] = [this.#topics, this.#groups];
    this.#publisher = new KafkaPublisher({ kafka, options, topics, groups, name: this.name, closing: this.#closing });
  }

  publish(records: readonly Outgoing[]): Promise<void> {
    return this.#publisher.publish(records);
  }

  subscribe(subscription: Subscription): BusConsumer {
    if (this.#closing.begun.aborted) throw new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed.");
    const deps = { kafka: this.#kafka, options: this.#options, topics: this.#topics, name: this.name };
    const consumer = new KafkaConsumer(deps, subscription);
    this.#consumers.add(consumer);
    void consumer.ended.then(() => this.#consumers.delete(consumer));
    return consumer;
  }

  ensure(topics: readonly string[], options?: EnsureOptions): Promise<void> {
    return this.#topics.ensure(topics, options);
  }

  members(group: string): Promise<number> {
    return this.#groups.members(group);
  }

  async close(): Promise<void> {
    await this.#closing.until(() => Promise.all([this.#publisher.ended(), ...[...this.#consumers].map((consumer) => consumer.close())]));
  }
}
