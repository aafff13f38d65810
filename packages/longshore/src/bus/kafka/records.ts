// Records as a broker sends them: in batches, which are handed on as they are.

import type { BusRecord } from "../bus.ts";

/** The part of a fetch's answer that is read here. */
export interface FetchAnswer {
  readonly responses: readonly {
    readonly topicId: string;
    readonly partitions: readonly {
      readonly partitionIndex: number;
      readonly errorCode: number;
      readonly records?: readonly {
        readonly firstOffset: bigint;
        readonly firstTimestamp: bigint;
        readonly lastOffsetDelta: number;
        readonly attributes: number;
        readonly records: readonly {
          readonly offsetDelta: number;
          readonly timestampDelta: bigint;
          readonly key: Buffer | null;
          readonly value: Buffer | null;
        }[];
      }[];
    }[];
  }[];
}

/** Set in the attributes of a batch that is the broker's own, such as the end of a transaction. */
const isControl = 1 << 5;

/** Consecutive records of one partition. */
export class Fetched {
  readonly topic: string;
  readonly index: number;
  /** Where to read on when these are done. */
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

  /** Itself, when it has no more than `max` records; else its first ones, which it has no longer. */
  split(max: number): Fetched {
    if (this.#records.length <= max) return this;
    const first = this.#records.slice(0, max);
    this.#records = this.#records.slice(max);
    const part = new Fetched(this.topic, this.index, first, (first.at(-1) as KafkaRecord).offset + 1n);
    this.bytes -= part.bytes;
    return part;
  }
}

/** What of an answer has not been read yet. A broker begins with the batch that has the position in it, not with the position. */
export function* fetchedOf(
  answer: FetchAnswer,
  names: ReadonlyMap<string, string>,
  positionOf: (topic: string, index: number) => bigint,
): Iterable<Fetched> {
  for (const { topicId, partitions } of answer.responses) {
    const topic = names.get(topicId);
    if (topic === undefined) continue;
    for (const { partitionIndex, records: batches = [] } of partitions) {
      const position = positionOf(topic, partitionIndex);
      const found: KafkaRecord[] = [];
      let next = position;
      for (const batch of batches) {
        const end = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n;
        if (end > next) next = end;
        if ((batch.attributes & isControl) !== 0) continue;
        const firstAt = Number(batch.firstTimestamp);
        // Numbers are compared instead of bigints, which cost more than all else here.
        const skip = Number(position - batch.firstOffset);
        for (const { offsetDelta, timestampDelta, key, value } of batch.records) {
          if (offsetDelta < skip) continue;
          found.push(new KafkaRecord(topic, partitionIndex, batch.firstOffset, offsetDelta, key, value, firstAt + Number(timestampDelta)));
        }
      }
      if (next > position) yield new Fetched(topic, partitionIndex, found, next);
    }
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

  constructor(topic: string, index: number, first: bigint, delta: number, key: Buffer | null, value: Buffer | null, at: number) {
    this.topic = topic;
    this.key = key === null ? null : key.toString("utf8");
    this.value = value ?? empty;
    this.at = at;
    this.#index = index;
    this.#first = first;
    this.#delta = delta;
  }

  get offset(): bigint {
    return this.#first + BigInt(this.#delta);
  }

  /** Written only when somebody asks: it costs as much as the rest of the record. */
  get place(): string {
    return `${this.topic}[${this.#index}]@${this.offset}`;
  }
}

function bytesOf(records: readonly KafkaRecord[]): number {
  let bytes = 0;
  for (const { value } of records) bytes += value.byteLength;
  return bytes;
}
