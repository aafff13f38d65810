// Reads batches of records in Kafka's format (version 2) from one buffer. The library's own reader unpacks a batch of any size in one step,
// and fails for the whole response when one batch cannot be read.
// Layout: https://kafka.apache.org/documentation/#recordbatch

export interface BatchRecord {
  readonly offsetDelta: number;
  readonly timestampDelta: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** The size of the whole record with key and headers. While a part of the record is referenced, all of it stays in memory. */
  readonly bytes: number;
}

export interface PackedBatch {
  readonly firstOffset: bigint;
  /** The offset after the last record. */
  readonly end: bigint;
  readonly firstTimestamp: number;
  readonly codec: number;
  /** True for a batch of the broker itself, such as the end of a transaction. */
  readonly isControl: boolean;
  readonly count: number;
  readonly body: Buffer;
}

/** Offset and length come before the bytes that the length counts. */
const lengthEnd = 12;
const headBytes = 61;
const codecBits = 0b111;
const controlBit = 1 << 5;
/** The limit of values in a request: each record becomes an object, and the smallest has 7 bytes. */
const batchRecordsMax = 131_072;

/** The batches of one partition. The last one may be cut off by the size limit of a fetch; it is fetched again. */
export function* batchesOf(bytes: Buffer): Generator<PackedBatch, void, void> {
  for (let at = 0; at + lengthEnd <= bytes.length; ) {
    const end = at + lengthEnd + bytes.readInt32BE(at + 8);
    if (end > bytes.length || end < at + headBytes) return;
    const attributes = bytes.readInt16BE(at + 21);
    const firstOffset = bytes.readBigInt64BE(at);
    yield {
      firstOffset,
      end: firstOffset + BigInt(bytes.readInt32BE(at + 23)) + 1n,
      firstTimestamp: Number(bytes.readBigInt64BE(at + 27)),
      codec: attributes & codecBits,
      isControl: (attributes & controlBit) !== 0,
      count: bytes.readInt32BE(at + 57),
      body: bytes.subarray(at + headBytes, end),
    };
    at = end;
  }
}

/** The records of an unpacked batch. Throws when there are too many, or when the number differs from its header. */
export function recordsOf(body: Buffer, count: number): BatchRecord[] {
  if (count > batchRecordsMax) throw new RangeError(`it has ${count} records, more than ${batchRecordsMax}`);
  const reader = new VarintReader(body);
  return Array.from({ length: count }, () => readRecord(reader));
}

function readRecord(reader: VarintReader): BatchRecord {
  const from = reader.at;
  const end = reader.varint() + reader.at;
  // The attributes, which are unused.
  reader.at++;
  const timestampDelta = reader.varint();
  const offsetDelta = reader.varint();
  const key = reader.bytes();
  const value = reader.bytes();
  // Headers are skipped.
  if (end < reader.at) throw new RangeError("a record is longer than it has");
  reader.at = end;
  return { offsetDelta, timestampDelta, key, value, bytes: end - from };
}

class VarintReader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Zigzag, seven bits per byte, the lowest first. Times may have more than 32 bits. */
  varint(): number {
    let value = 0;
    for (let weight = 1; weight < 2 ** 70; weight *= 128) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) throw new RangeError("it ends within a record");
      value += (byte & 0x7f) * weight;
      if (byte < 0x80) break;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Null for a length of -1. */
  bytes(): Buffer | null {
    const length = this.varint();
    if (length < 0) return null;
    const from = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) throw new RangeError("it ends within a record");
    return this.#bytes.subarray(from, this.at);
  }
}
