// Assigns partitions to members, and encodes the data that members of a group exchange. It is the `roundrobin` strategy of Kafka's clients,
// so members in other languages can share a group with ours. Layouts: ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json
// of Kafka, version 0.

import { isObject } from "../../core/json/json.ts";

export const assignorName = "roundrobin";

/** Topic to partitions. */
export type Assignment = ReadonlyMap<string, readonly number[]>;

export function encodeSubscription(topics: readonly string[]): Buffer {
  return Buffer.concat([int16(0), int32(topics.length), ...topics.map(string16), int32(-1)]);
}

/** Throws a RangeError for invalid bytes. Any program that may join a group sends such bytes, and brokers do not check them. */
export function decodeSubscription(bytes: Buffer): string[] {
  const reader = new ByteReader(bytes);
  reader.skip(2);
  return reader.list(2, () => reader.string16());
}

/** Additional data of our leaders. Other leaders send none, and other members ignore it. */
export interface LeaderData {
  /** The number of partitions of each topic of the group. */
  readonly counts: { readonly [topic: string]: number };
  /** The first partition that was added since the last assignment, by topic. */
  readonly added: { readonly [topic: string]: number };
}

export function encodeAssignment(assignment: Assignment, leaderData: LeaderData | null = null): Buffer {
  const data = leaderData === null ? null : Buffer.from(JSON.stringify(leaderData));
  const topics = [...assignment].map(([topic, partitions]) =>
    Buffer.concat([string16(topic), int32(partitions.length), ...partitions.map(int32)]),
  );
  return Buffer.concat([int16(0), int32(topics.length), ...topics, int32(data?.length ?? -1), data ?? Buffer.alloc(0)]);
}

/** A member without partitions may receive no bytes at all. Throws a RangeError for invalid bytes, as above. */
export function decodeAssignment(bytes: Buffer): { readonly assignment: Assignment; readonly leaderData: LeaderData | null } {
  if (bytes.length < 6) return { assignment: new Map(), leaderData: null };
  const reader = new ByteReader(bytes);
  reader.skip(2);
  const topics = reader.list(6, () => {
    const topic = reader.string16();
    return [topic, reader.list(4, () => reader.int32())] as const;
  });
  return { assignment: new Map(topics), leaderData: leaderDataIn(reader.bytes32()) };
}

/** Other leaders may send any data here. */
function leaderDataIn(data: Buffer): LeaderData | null {
  try {
    const { counts, added } = JSON.parse(data.toString()) as Partial<LeaderData>;
    return isObject(counts) && isObject(added) ? { counts, added } : null;
  } catch {
    return null;
  }
}

/** Assigns each partition to the next member that subscribes to its topic. */
export function assign(members: ReadonlyMap<string, readonly string[]>, partitionsOf: (topic: string) => number): Map<string, Assignment> {
  const ids = [...members.keys()].sort();
  const assigned = new Map(ids.map((id) => [id, new Map<string, number[]>()]));
  const topics = [...new Set([...members.values()].flat())].sort();
  let turn = 0;
  for (const topic of topics) {
    for (let partition = 0; partition < partitionsOf(topic); partition++) {
      while (!members.get(ids[turn % ids.length] as string)?.includes(topic)) turn++;
      const own = assigned.get(ids[turn++ % ids.length] as string) as Map<string, number[]>;
      own.set(topic, [...(own.get(topic) ?? []), partition]);
    }
  }
  return assigned;
}

class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  skip(count: number): void {
    this.#at += count;
  }

  int32(): number {
    this.#at += 4;
    return this.#bytes.readInt32BE(this.#at - 4);
  }

  /** Reads a list after its length. Throws a RangeError when the bytes cannot hold it: an item has at least `bytesMin` bytes. */
  list<Item>(bytesMin: number, item: () => Item): Item[] {
    const length = this.int32();
    const room = (this.#bytes.length - this.#at) / bytesMin;
    if (length > room) throw new RangeError(`a list has ${length} entries, more than its ${this.#bytes.length} bytes hold`);
    return Array.from({ length }, item);
  }

  /** Empty when there are none. */
  bytes32(): Buffer {
    const length = this.#at + 4 <= this.#bytes.length ? Math.max(0, this.int32()) : 0;
    return this.#bytes.subarray(this.#at, this.#at + length);
  }

  string16(): string {
    const length = this.#bytes.readInt16BE(this.#at);
    // A negative length would move the reader back, so it would read the same bytes without end.
    if (length < 0 || this.#at + 2 + length > this.#bytes.length) throw new RangeError(`a text has ${length} bytes`);
    this.#at += 2 + length;
    return this.#bytes.toString("utf8", this.#at - length, this.#at);
  }
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function string16(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([int16(bytes.length), bytes]);
}
