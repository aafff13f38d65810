// Publishes to Kafka, one request at a time. When a response is lost, the batch is sent again. The producer is idempotent: it numbers its
// batches, and the broker stores each once. So a batch must be sent again unchanged, or by a new producer.

import { againMsDefault, type Outgoing, recordBytesMax } from "../../core/bus/bus.ts";
import { bytesOf, checkOutgoing } from "../../core/bus/check.ts";
import { type Clock, pause, systemClock } from "../../core/clock.ts";
import { LongshoreError, toError } from "../../core/errors.ts";
import { PublishBatcher } from "../publish-batcher.ts";
import { hungUpHint, type KafkaModule, messageOf, named, refusalOf } from "./client.ts";
import type { KafkaGroups } from "./groups.ts";
import type { KafkaBusOptions } from "./options.ts";
import { Produce, type ProducedMessage } from "./produce.ts";
import type { Shutdown } from "./shutdown.ts";
import type { KafkaTopics } from "./topics.ts";

/**
 * A broker restarts in less time. After this time `publish` rejects. For records that must not be lost, the caller then publishes again.
 */
const patienceMsDefault = 30_000;
/** The mask that Java's producers apply to hashes: all clients must map a key to the same partition. */
const positive = 0x7fffffff;
/** The limit of records of one request; except for very small records, the limit of bytes is reached first. */
const requestRecordsMax = 5_000;

export interface KafkaPublisherDeps {
  readonly kafka: KafkaModule;
  readonly options: KafkaBusOptions;
  readonly topics: KafkaTopics;
  readonly groups: KafkaGroups;
  readonly name: string;
  readonly closing: Shutdown;
}

export class KafkaPublisher {
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #topics: KafkaTopics;
  readonly #groups: KafkaGroups;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #batcher: PublishBatcher;
  readonly #closing: Shutdown;
  #producer: Produce | undefined;
  /** The partition for records without a key: a different one for each request, so that batches stay whole. */
  #turn = Math.floor(Math.random() * positive);

  constructor({ kafka, options, topics, groups, name, closing }: KafkaPublisherDeps) {
    this.#kafka = kafka;
    this.#options = options;
    this.#topics = topics;
    this.#groups = groups;
    this.#name = name;
    this.#closing = closing;
    this.#clock = options.clock ?? systemClock;
    // All records of a request may be one batch, and brokers limit a batch to the size of the largest record.
    this.#batcher = new PublishBatcher({
      send: (records, calls) => this.#send(records, calls),
      bytesMax: recordBytesMax,
      recordsMax: requestRecordsMax,
    });
  }

  async publish(records: readonly Outgoing[]): Promise<void> {
    if (this.#closing.begun.aborted) throw closed();
    checkOutgoing(records);
    await this.#batcher.add(records);
  }

  /** Called when the bus is closed: resolves when all pending records are published, or refused after one more try. */
  async ended(): Promise<void> {
    await this.#batcher.idle();
    await this.#drop();
  }

  async #send(records: readonly Outgoing[], calls = 1): Promise<void> {
    const turn = this.#turn++;
    const pending = { messages: this.#messages(records, turn, await this.#readPartitions(records)) };
    const { trouble, againMs = againMsDefault, patienceMs = patienceMsDefault } = this.#options;
    const what = `publishing to ${this.#name}`;
    const until = this.#clock.now() + patienceMs;
    for (;;) {
      if (this.#closing.late.aborted) throw closed();
      try {
        this.#producer ??= new Produce(this.#kafka, this.#options, this.#closing.late);
        await this.#producer.send(pending);
        trouble?.working(what, this.#name);
        return;
      } catch (error) {
        if (named(error, "MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE") !== undefined) {
          if (calls > 1 || records.length === 1) throw tooLarge(records[0] as Outgoing, error);
          return this.#inHalves(records);
        }
        const refusal = refusalOf(error, this.#name) ?? (error instanceof LongshoreError ? error : undefined);
        if (refusal !== undefined && refusal.code !== "LONGSHORE_UNREACHABLE") {
          await this.#drop();
          throw refusal;
        }
        const why = `${messageOf(error)}${hungUpHint(error, this.#options)}`;
        trouble?.failing(what, why, this.#name);
        if (this.#clock.now() + againMs > until || this.#closing.begun.aborted) {
          // It is not known whether the broker has the batch, so this producer's sequence numbers cannot be used any more.
          await this.#drop();
          throw unreachable(this.#name, why, error);
        }
        await this.#mend(error, records);
        await pause(this.#clock, againMs, this.#closing.begun);
      }
    }
  }

  /** Prepares the next try. */
  async #mend(error: unknown, records: readonly Outgoing[]): Promise<void> {
    const names = new Set(records.map(({ topic }) => topic));
    if (/unknown topic/i.test(messageOf(error)) || named(error, "UNKNOWN_TOPIC_OR_PARTITION") !== undefined) {
      this.#topics.forget(names);
      await this.#topics.ensure([...names]).catch((cause) => {
        if (cause instanceof LongshoreError) throw cause;
        // The broker is not reachable; the next try reports it.
      });
    }
    const out = ["OUT_OF_ORDER_SEQUENCE_NUMBER", "DUPLICATE_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID"];
    if (named(error, ...out) !== undefined) await this.#drop();
    else this.#producer?.forget();
  }

  /** Sends the records in two halves: this topic has a lower limit than others. */
  async #inHalves(records: readonly Outgoing[]): Promise<void> {
    const middle = Math.ceil(records.length / 2);
    await this.#send(records.slice(0, middle));
    await this.#send(records.slice(middle));
  }

  /** The partitions that group members read, for each topic that a group shares. */
  async #readPartitions(records: readonly Outgoing[]): Promise<ReadonlyMap<string, readonly number[]>> {
    const { readersOf } = this.#options;
    const found = new Map<string, readonly number[]>();
    if (readersOf === undefined) return found;
    for (const topic of new Set(records.map((record) => record.topic))) {
      const group = readersOf(topic);
      const read = group === undefined ? undefined : await this.#groups.read(group, topic);
      if (read !== undefined) found.set(topic, read);
    }
    return found;
  }

  #messages(records: readonly Outgoing[], turn: number, read: ReadonlyMap<string, readonly number[]>): ProducedMessage[] {
    let last: string | null = null;
    let bytes: Buffer | null = null;
    let place = turn;
    return records.map(({ topic, key, value, retry = 0 }) => {
      // Consecutive records often have the same key.
      if (key !== last) {
        last = key;
        bytes = key === null ? null : Buffer.from(key);
        place = bytes === null ? turn : this.#kafka.murmur2(bytes) & positive;
      }
      const among = read.get(topic);
      return { topic, key: bytes, value, place: place + retry, ...(among === undefined ? {} : { among }) };
    });
  }

  async #drop(): Promise<void> {
    const producer = this.#producer;
    this.#producer = undefined;
    await producer?.close();
  }
}

function tooLarge(record: Outgoing, cause: unknown): LongshoreError {
  const whose = record.key === null ? "" : ` with the key ${JSON.stringify(record.key)}`;
  return new LongshoreError(
    "LONGSHORE_LIMIT",
    `A record for the topic ${record.topic}${whose} has ${bytesOf(record)} bytes, which is more than max.message.bytes of the topic.`,
    { cause, detail: { field: "value", expected: "no more bytes than max.message.bytes of the topic" } },
  );
}

function closed(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The bus has been closed.");
}

function unreachable(name: string, why: string, cause: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_UNREACHABLE", `Records could not be published to ${name}: ${why}`, {
    cause: toError(cause),
  });
}
