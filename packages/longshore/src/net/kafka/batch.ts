// Writes a batch of records in Kafka's format (version 2) into one buffer. The library's own writer makes several small buffers for each
// record. It takes 2.5 to 3 us for a record of 1 kB, and more to prepare the record; this writer takes 0.9 us. Layout:
// https://kafka.apache.org/documentation/#recordbatch

export interface BatchMessage {
  readonly key: Buffer | null;
  readonly value: string | Uint8Array;
}

export interface BatchHead {
  readonly producerId: bigint;
  readonly producerEpoch: number;
  /** The sequence number of the first record among all that this producer has sent to the partition. */
  readonly sequence: number;
  readonly at: number;
  crc32c(bytes: Uint8Array): number;
}

/** Everything before the first record. */
const headBytes = 61;
/** The position of the checksum, and the start of what it covers. */
const crcAt = 17;
const coveredFrom = 21;
/** Length, attributes, two deltas, lengths of key and value, number of headers: the maximum size of each. */
const recordHeadBytesMax = 5 + 1 + 1 + 5 + 5 + 5 + 1;

export function encodeBatch(messages: readonly BatchMessage[], head: BatchHead): Buffer {
  const sizes = messages.map(({ value }) => (typeof value === "string" ? Buffer.byteLength(value) : value.byteLength));
  let bytes = headBytes;
  for (const [at, { key }] of messages.entries()) bytes += recordHeadBytesMax + (key?.length ?? 0) + (sizes[at] as number);
  const buffer = Buffer.allocUnsafe(bytes);
  let end = headBytes;
  for (const [at, message] of messages.entries()) end = writeRecord(buffer, end, message, sizes[at] as number, at);
  writeHead(buffer, end, messages.length, head);
  return buffer.subarray(0, end);
}

function writeRecord(buffer: Buffer, from: number, { key, value }: BatchMessage, valueBytes: number, number: number): number {
  const keyBytes = key?.length ?? 0;
  const keyHead = key === null ? 1 : varintBytes(keyBytes);
  // Attributes, the time delta (0) and the number of headers (0) take a byte each.
  const length = 3 + varintBytes(number) + keyHead + keyBytes + varintBytes(valueBytes) + valueBytes;
  let at = writeVarint(buffer, from, length);
  buffer[at++] = 0;
  buffer[at++] = 0;
  at = writeVarint(buffer, at, number);
  at = writeVarint(buffer, at, key === null ? -1 : keyBytes);
  if (key !== null) at += key.copy(buffer, at);
  at = writeVarint(buffer, at, valueBytes);
  if (typeof value === "string") at += buffer.write(value, at, valueBytes, "utf8");
  else {
    buffer.set(value, at);
    at += valueBytes;
  }
  buffer[at++] = 0;
  return at;
}

function writeHead(buffer: Buffer, end: number, count: number, { producerId, producerEpoch, sequence, at, crc32c }: BatchHead): void {
  buffer.writeBigInt64BE(0n, 0);
  buffer.writeInt32BE(end - 12, 8);
  buffer.writeInt32BE(0, 12);
  buffer.writeInt8(2, 16);
  buffer.writeInt16BE(0, 21);
  buffer.writeInt32BE(count - 1, 23);
  buffer.writeBigInt64BE(BigInt(at), 27);
  buffer.writeBigInt64BE(BigInt(at), 35);
  buffer.writeBigInt64BE(producerId, 43);
  buffer.writeInt16BE(producerEpoch, 51);
  buffer.writeInt32BE(sequence, 53);
  buffer.writeInt32BE(count, 57);
  buffer.writeUInt32BE(crc32c(buffer.subarray(coveredFrom, end)), crcAt);
}

/** Zigzag, seven bits per byte; for lengths and counts, or -1. */
function writeVarint(buffer: Buffer, from: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let at = from;
  while (rest > 0x7f) {
    buffer[at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  buffer[at++] = rest;
  return at;
}

function varintBytes(value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  let bytes = 1;
  for (; rest > 0x7f; rest >>>= 7) bytes++;
  return bytes;
}
