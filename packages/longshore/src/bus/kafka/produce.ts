// One idempotent producer. It numbers the messages that it sends to each partition. So a broker that receives a batch twice stores it once.
// It has at most one open request, and sends a failed batch again unchanged.

import type { Connection, Producer } from "@platformatic/kafka";
import { LongshoreError } from "../../core/errors.ts";
import { type BatchMessage, encodeBatch } from "../../net/kafka/batch.ts";
import { clientOptions, hangUp, type KafkaModule, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

export interface ProducedMessage extends BatchMessage {
  readonly topic: string;
  /** The partition is `place` modulo the number of partitions. */
  readonly place: number;
  /** The partitions to choose from, as far as they exist; all of them when absent. */
  readonly among?: readonly number[];
}

/** The messages that are not sent yet. */
export interface Pending {
  messages: readonly ProducedMessage[];
}

interface Batch {
  readonly topic: string;
  readonly index: number;
  readonly messages: ProducedMessage[];
}

/** Assigned by the broker. */
interface Identity {
  readonly producerId: bigint;
  readonly producerEpoch: number;
}

type ProduceAnswer = ReturnType<KafkaModule["produceV11"]["parseResponse"]>;

/** Wait for all in-sync replicas. */
const acksAll = -1;
const produceKey = 0;
/** The first version of the produce request that has the layout of `#request`. */
const produceVersionMin = 9;
/** After this many messages to a partition, their numbers start at 0 again. */
const sequenceCount = 2 ** 31;

export class Produce {
  readonly #kafka: KafkaModule;
  /** Used for connections and metadata. Its own `send` is not used. */
  readonly #client: Producer;
  /** The number of the next message, by topic and partition. */
  readonly #sequences = new Map<string, number>();
  readonly #late: AbortSignal;
  #identity: Identity | undefined;

  /** Open requests fail when `late` aborts. */
  constructor(kafka: KafkaModule, options: KafkaBusOptions, late: AbortSignal) {
    this.#kafka = kafka;
    this.#late = late;
    this.#client = new kafka.Producer(clientOptions(options));
  }

  /** Sends all messages. When it throws, `pending` has those that the broker may not have stored. */
  async send(pending: Pending): Promise<void> {
    this.#identity ??= await this.#soon(this.#client.initIdempotentProducer({}));
    const topics = [...new Set(pending.messages.map(({ topic }) => topic))];
    const metadata = await this.#soon(this.#client.metadata({ topics }));
    const byLeader = new Map<number, Map<string, Batch>>();
    for (const message of pending.messages) {
      const topic = metadata.topics.get(message.topic);
      const index = partitionOf(message, topic?.partitionsCount ?? 1);
      const leader = topic?.partitions[index]?.leader ?? -1;
      const batches = byLeader.get(leader) ?? new Map<string, Batch>();
      if (batches.size === 0) byLeader.set(leader, batches);
      const name = nameOf(message.topic, index);
      const batch = batches.get(name);
      if (batch === undefined) batches.set(name, { topic: message.topic, index, messages: [message] });
      else batch.messages.push(message);
    }
    const results = await Promise.allSettled(
      [...byLeader].map(async ([leader, batches]) => {
        const broker = metadata.brokers.get(leader);
        if (broker === undefined) throw new LongshoreError("LONGSHORE_UNREACHABLE", `No broker leads a partition of ${topics.join(", ")}.`);
        await this.#sendTo(broker, batches, pending);
      }),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** Reads the metadata of the brokers again before the next send. */
  forget(): void {
    this.#client.clearMetadata();
  }

  async close(): Promise<void> {
    await hangUp(this.#client);
  }

  #soon<T>(request: Promise<T>): Promise<T> {
    return within(requestMsMax, request, this.#late);
  }

  async #sendTo(broker: { host: string; port: number }, batches: ReadonlyMap<string, Batch>, pending: Pending): Promise<void> {
    const connection = await this.#soon(this.#connect(broker));
    const version = await this.#soon(this.#version());
    const stored = (answer: ProduceAnswer) => {
      const done = new Set<ProducedMessage>();
      for (const { name, partitionResponses } of answer.responses) {
        for (const { index, errorCode } of partitionResponses) {
          const batch = batches.get(nameOf(name, index));
          if (errorCode !== 0 || batch === undefined) continue;
          const sequence = this.#sequences.get(nameOf(name, index)) ?? 0;
          this.#sequences.set(nameOf(name, index), (sequence + batch.messages.length) % sequenceCount);
          for (const message of batch.messages) done.add(message);
        }
      }
      pending.messages = pending.messages.filter((message) => !done.has(message));
    };
    try {
      stored(await this.#soon(this.#request(connection, version, [...batches.values()])));
    } catch (error) {
      // Some partitions may have stored their batches.
      const { response } = error as { response?: ProduceAnswer };
      if (response !== undefined) stored(response);
      throw error;
    }
  }

  #request(connection: Connection, version: number, batches: readonly Batch[]): Promise<ProduceAnswer> {
    const { Writer, produceV11, crc32c } = this.#kafka;
    const identity = this.#identity as Identity;
    const at = Date.now();
    const byTopic = new Map<string, Batch[]>();
    for (const batch of batches) byTopic.set(batch.topic, [...(byTopic.get(batch.topic) ?? []), batch]);
    const write = () =>
      Writer.create()
        .appendString(null)
        .appendInt16(acksAll)
        .appendInt32(requestMsMax)
        .appendArray([...byTopic], (topics, [topic, own]) => {
          topics.appendString(topic).appendArray(own, (partitions, { index, messages }) => {
            const sequence = this.#sequences.get(nameOf(topic, index)) ?? 0;
            const bytes = encodeBatch(messages, { ...identity, sequence, at, crc32c });
            partitions
              .appendInt32(index)
              .appendUnsignedVarInt(bytes.length + 1)
              .append(bytes);
          });
        })
        .appendTaggedFields();
    return new Promise((resolve, reject) => {
      connection.send(produceKey, version, write, produceV11.parseResponse, true, true, (error, answer) =>
        error ? reject(error) : resolve(answer as ProduceAnswer),
      );
    });
  }

  #connect(broker: { host: string; port: number }): Promise<Connection> {
    return new Promise((resolve, reject) => {
      this.#client[this.#kafka.kGetConnection](broker, (error, connection) => (error ? reject(error) : resolve(connection as Connection)));
    });
  }

  #version(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#client[this.#kafka.kGetApi]("Produce", (error, api) => {
        if (error || api === undefined) reject(error);
        else if (api.version < produceVersionMin)
          reject(new LongshoreError("LONGSHORE_BAD_CONFIG", "The broker is older than Kafka 2.8, expected 2.8 or newer."));
        else resolve(api.version);
      });
    });
  }
}

/**
 * Members of a group may keep reading partitions for minutes that are gone: the topic was made again with fewer. Without one that is still
 * there, all are chosen from.
 */
function partitionOf({ place, among = [] }: ProducedMessage, count: number): number {
  // They are in order.
  const there = (among.at(-1) ?? 0) < count ? among : among.filter((index) => index < count);
  return there[place % there.length] ?? place % count;
}

function nameOf(topic: string, index: number): string {
  return `${topic}:${index}`;
}
