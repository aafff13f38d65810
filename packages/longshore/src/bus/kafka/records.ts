// Reads records from the batches of a fetch response. A batch that cannot be read is skipped and reported: fetching it again would block
// all records after it.

import type { BusRecord } from "../../core/bus/bus.ts";
import { toError } from "../../core/errors.ts";
import { type BatchRecord, batchesOf, type PackedBatch, recordsOf } from "../../net/kafka/read-batch.ts";
import type { FetchAnswer } from "./fetch.ts";
import { UnknownPacking, type Unpack, unpackedBytesMax } from "./unpack.ts";

/** The memory of a record object besides its bytes. */
const recordObjectBytes = 200;

/** Consecutive records of one partition. */
export class Fetched {
  readonly topic: string;
  readonly index: number;
  /** The offset to read next when these records are handled. */
  readonly next: bigint;
  #records: readonly KafkaRecord[];
  bytes: number;

  constructor(topic: string, index: number, records: readonly KafkaRecord[], next: bigint) {
    this.topic = topic;
    this.index = index;
    this.#records = records;
    this.next = next;
    this.bytes = bytesOf(records);
  }

  get records(): readonly BusRecord[] {
    return this.#records;
  }

  /** Returns itself when it has at most `max` records. Otherwise removes its first `max` records and returns them. */
  split(max: number): Fetched {
    if (this.#records.length <= max) return this;
    const first = this.#records.slice(0, max);
    this.#records = this.#records.slice(max);
    const batch = new Fetched(this.topic, this.index, first, (first.at(-1) as KafkaRecord).offset + 1n);
    this.bytes -= batch.bytes;
    return batch;
  }
}

export interface Reading {
  /** The names of topics by their ids. */
  readonly names: ReadonlyMap<string, string>;
  readonly unpack: Unpack;
  positionOf(topic: string, index: number): bigint;
  /** Called for a batch that is skipped; `place` is where it begins. */
  unreadable(place: string, reason: string): void;
  /** Called when a batch, and so its partition, waits for a process that can unpack it. */
  waits(topic: string, index: number, reason: string): void;
}

/**
 * The unread records of a response. A response starts with the batch that contains the position, which may have earlier records. When
 * compressed batches have reached the limit of one fetch, the rest is left for the next fetch.
 */
export async function* fetchedOf(answer: FetchAnswer, reading: Reading): AsyncGenerator<Fetched, void, void> {
  let unpackedBytes = 0;
  for (const { topicId, partitions } of answer.responses) {
    const topic = reading.names.get(topicId);
    if (topic === undefined) continue;
    for (const { partitionIndex, records } of partitions) {
      const position = reading.positionOf(topic, partitionIndex);
      const found: KafkaRecord[] = [];
      let next = position;
      for (const batch of batchesOf(records)) {
        if (unpackedBytes >= unpackedBytesMax) break;
        if (batch.isControl || batch.end <= position) {
          if (batch.end > next) next = batch.end;
          continue;
        }
        try {
          const body = batch.codec === 0 ? batch.body : await reading.unpack(batch.body, batch.codec);
          if (batch.codec !== 0) unpackedBytes += body.length + batch.count * recordObjectBytes;
          addRecords(found, { topic, index: partitionIndex, position }, batch, body);
        } catch (error) {
          if (error instanceof UnknownPacking) {
            reading.waits(topic, partitionIndex, error.message);
            break;
          }
          reading.unreadable(`${topic}[${partitionIndex}]@${batch.firstOffset}`, toError(error).message);
        }
        if (batch.end > next) next = batch.end;
      }
      if (next > position) yield new Fetched(topic, partitionIndex, found, next);
    }
  }
}

interface At {
  readonly topic: string;
  readonly index: number;
  readonly position: bigint;
}

function addRecords(found: KafkaRecord[], { topic, index, position }: At, batch: PackedBatch, body: Buffer): void {
  const { firstOffset, firstTimestamp, count } = batch;
  // Compares numbers instead of bigints, which would cost more than everything else here.
  const skip = Number(position - firstOffset);
  for (const record of recordsOf(body, count)) {
    if (record.offsetDelta >= skip) found.push(new KafkaRecord(topic, index, firstOffset, record, firstTimestamp));
  }
}

const empty = Buffer.alloc(0);

class KafkaRecord implements BusRecord {
  readonly topic: string;
  readonly key: string | null;
  readonly value: Uint8Array;
  readonly at: number;
  readonly #index: number;
  readonly #first: bigint;
  readonly #delta: number;
  /** The memory of the record. */
  readonly bytes: number;

  constructor(topic: string, index: number, first: bigint, record: BatchRecord, firstAt: number) {
    const { offsetDelta, timestampDelta, key, value, bytes } = record;
    this.topic = topic;
    this.key = key === null ? null : key.toString("utf8");
    this.value = value ?? empty;
    this.at = firstAt + timestampDelta;
    this.bytes = bytes + recordObjectBytes;
    this.#index = index;
    this.#first = first;
    this.#delta = offsetDelta;
  }

  get offset(): bigint {
    return this.#first + BigInt(this.#delta);
  }

  /** A getter, because building the text costs as much as the rest of the record. */
  get place(): string {
    return `${this.topic}[${this.#index}]@${this.offset}`;
  }
}

function bytesOf(records: readonly KafkaRecord[]): number {
  let bytes = 0;
  for (const record of records) bytes += record.bytes;
  return bytes;
}
