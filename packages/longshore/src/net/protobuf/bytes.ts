// The byte level of Protocol Buffers: varints, fixed numbers, lengths and tags, read forwards and written backwards.
//
// A writer that goes backwards has finished a nested message before it writes the length in front of it. So nothing has to be measured
// first or moved. The meaning of fields is in protobuf.ts.
import { isUtf8 } from "node:buffer";

/** The layout of a field's value: a varint, eight bytes, a length and its bytes, four bytes. Groups (3, 4) are only skipped. */
export type WireType = 0 | 1 | 2 | 5;

/**
 * The limit of nested messages. Deep enough for every schema, and for JSON as deep as `jsonDepthMax` allows; shallow enough for the stack.
 */
export const protobufDepthMax = 100;
/** The format's own limit of one message. Transports have much smaller limits. */
const MESSAGE_BYTES_MAX = 2 ** 31 - 1;
/** Most messages fit; for a larger one the buffer doubles. */
const FIRST_BUFFER_BYTES = 512;
/** For texts up to this length, a loop over the characters is faster than a call into native code. */
const SHORT_TEXT = 48;
const TWO_32 = 2 ** 32;

/** A fault in one field. It becomes an error of the whole message once the path to the field is known. */
export class ProtobufFault extends Error {
  /** The path so far, innermost part first. */
  readonly path: string[] = [];
  readonly expected: string | undefined;

  constructor(reason: string, expected?: string) {
    super(reason);
    this.expected = expected;
  }
}

/** A message with more fields than its reader accepts. */
export class TooManyFields extends Error {
  readonly max: number;

  constructor(max: number) {
    super(`more than ${max} fields`);
    this.max = max;
  }
}

export class ProtobufReader {
  readonly #bytes: Buffer;
  #view: DataView | undefined;
  /** The position of the next byte. */
  at = 0;
  /** The end of the message that is being read; moved inwards while a nested message is read. */
  end: number;
  /** The upper half of the last varint. */
  #high = 0;
  readonly #fieldsMax: number;
  #fields = 0;

  constructor(bytes: Uint8Array, fieldsMax: number = Number.MAX_SAFE_INTEGER) {
    this.#fieldsMax = fieldsMax;
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.end = bytes.length;
  }

  /** The field number and wire type, as one number. */
  tag(): number {
    this.count();
    const tag = this.uint32();
    if (this.#high !== 0 || tag < 8) throw new ProtobufFault("a field number is out of range", "a number from 1 to 536870911");
    return tag;
  }

  /** Counts one more field, or one more number of a packed field. A message of few bytes may contain very many of them. */
  count(): void {
    if (++this.#fields > this.#fieldsMax) throw new TooManyFields(this.#fieldsMax);
  }

  /** The low 32 bits of a varint: longer ones are truncated, as the format requires. */
  uint32(): number {
    const bytes = this.#bytes;
    const first = this.at < this.end ? (bytes[this.at] as number) : 0x80;
    if (first < 0x80) {
      this.at++;
      this.#high = 0;
      return first;
    }
    return this.#longVarint();
  }

  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    const low = this.uint32();
    return low !== 0 || this.#high !== 0;
  }

  /** Beyond 2^53, the nearest number in JavaScript. */
  uint64(): number {
    const low = this.uint32();
    return this.#high === 0 ? low : this.#high * TWO_32 + low;
  }

  int64(): number {
    const low = this.uint32();
    return (this.#high | 0) * TWO_32 + low;
  }

  float(): number {
    return this.#bytes.readFloatLE(this.#take(4));
  }

  /** All numbers of JSON are doubles: a DataView reads one in a tenth of the time of `readDoubleLE`. */
  double(): number {
    this.#view ??= new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    return this.#view.getFloat64(this.#take(8), true);
  }

  fixed32(): number {
    return this.#bytes.readUInt32LE(this.#take(4));
  }

  fixed64(): bigint {
    return this.#bytes.readBigUInt64LE(this.#take(8));
  }

  string(): string {
    const length = this.length();
    const start = this.#take(length);
    const text = this.#bytes.toString("utf8", start, start + length);
    // The decoder writes this character for invalid bytes; only then the bytes must be checked.
    if (text.includes("\uFFFD") && !isUtf8(this.#bytes.subarray(start, this.at)))
      throw new ProtobufFault("the text is not valid UTF-8", "UTF-8");
    return text;
  }

  /** A copy: the received bytes belong to a buffer that may be shared and far larger. */
  bytes(): Uint8Array {
    const length = this.length();
    const start = this.#take(length);
    const copy = new Uint8Array(length);
    copy.set(this.#bytes.subarray(start, start + length));
    return copy;
  }

  /** A length that fits into the remaining bytes. */
  length(): number {
    const length = this.uint32();
    if (this.#high !== 0 || length > this.end - this.at) {
      throw new ProtobufFault(`the input ends early: ${length} bytes are announced and ${this.end - this.at} are left`);
    }
    return length;
  }

  /** Reads a length and narrows the reader to it; returns the outer end, to restore it later. */
  enter(): number {
    const outer = this.end;
    this.end = this.length() + this.at;
    return outer;
  }

  /** Skips an unknown field. */
  skip(tag: number, depth: number): void {
    const wire = tag & 7;
    if (wire === 0) this.uint32();
    else if (wire === 1) this.#take(8);
    else if (wire === 2) this.#take(this.length());
    else if (wire === 5) this.#take(4);
    else if (wire === 3) this.#skipGroup(tag >>> 3, depth);
    else throw new ProtobufFault(`wire type ${wire} of field ${tag >>> 3} does not exist here`, "0, 1, 2 or 5");
  }

  #skipGroup(number: number, depth: number): void {
    if (depth >= protobufDepthMax) throw new ProtobufFault(`the input nests deeper than ${protobufDepthMax} messages`);
    for (;;) {
      const tag = this.tag();
      if ((tag & 7) !== 4) this.skip(tag, depth + 1);
      else if (tag >>> 3 === number) return;
      else throw new ProtobufFault(`group ${number} is closed by the end of group ${tag >>> 3}`);
    }
  }

  #longVarint(): number {
    const bytes = this.#bytes;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.at >= this.end) throw new ProtobufFault("the input ends in the middle of a number");
      const byte = bytes[this.at++] as number;
      const seven = byte & 0x7f;
      if (shift < 28) low |= seven << shift;
      else if (shift === 28) {
        low |= seven << 28;
        high = seven >>> 4;
      } else if (shift < 64) high |= seven << (shift - 32);
      if (byte < 0x80) {
        this.#high = high >>> 0;
        return low >>> 0;
      }
    }
    throw new ProtobufFault("a number is longer than 10 bytes", "a varint of at most 64 bits");
  }

  /** Advances by `count` bytes; returns where they begin. */
  #take(count: number): number {
    const start = this.at;
    if (count > this.end - start)
      throw new ProtobufFault(`the input ends early: ${count} bytes are needed and ${this.end - start} are left`);
    this.at = start + count;
    return start;
  }
}

export class ProtobufWriter {
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_BUFFER_BYTES);
  /** The position of the last written byte: everything from here on is complete. */
  #at = FIRST_BUFFER_BYTES;

  /** The number of bytes written. The difference of two sizes is the length of what was written in between. */
  get size(): number {
    return this.#bytes.length - this.#at;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(this.#at);
  }

  /** A whole number from 0 to 2^64. */
  varint(value: number): void {
    if (value < 0x80) {
      this.#reserve(1);
      this.#bytes[this.#at] = value;
      return;
    }
    let size = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
    this.#reserve(size);
    const bytes = this.#bytes;
    let at = this.#at;
    let rest = value;
    while (rest >= 0x80) {
      bytes[at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    bytes[at] = rest;
  }

  /** A whole number that may be negative: negative numbers always take ten bytes. */
  signed(value: number): void {
    if (value >= 0) return this.varint(value);
    let rest = BigInt.asUintN(64, BigInt(value));
    this.#reserve(10);
    for (let at = this.#at; at < this.#at + 10; at++) {
      this.#bytes[at] = Number(rest & 0x7fn) | (at < this.#at + 9 ? 0x80 : 0);
      rest >>= 7n;
    }
  }

  float(value: number): void {
    this.#reserve(4);
    this.#bytes.writeFloatLE(value, this.#at);
  }

  double(value: number): void {
    this.#reserve(8);
    this.#bytes.writeDoubleLE(value, this.#at);
  }

  fixed32(value: number): void {
    this.#reserve(4);
    this.#bytes.writeUInt32LE(value, this.#at);
  }

  fixed64(value: bigint): void {
    this.#reserve(8);
    this.#bytes.writeBigUInt64LE(value, this.#at);
  }

  /** A text as its length and its bytes. */
  string(text: string): void {
    const length = text.length;
    if (length <= SHORT_TEXT && this.#ascii(text)) return this.varint(length);
    const size = Buffer.byteLength(text);
    this.#reserve(size);
    this.#bytes.write(text, this.#at, size, "utf8");
    this.varint(size);
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.varint(bytes.length);
  }

  /** Returns false and writes nothing when the text is not ASCII. */
  #ascii(text: string): boolean {
    const length = text.length;
    this.#reserve(length);
    const bytes = this.#bytes;
    for (let index = 0, at = this.#at; index < length; index++, at++) {
      const code = text.charCodeAt(index);
      if (code >= 0x80) {
        this.#at += length;
        return false;
      }
      bytes[at] = code;
    }
    return true;
  }

  #reserve(count: number): void {
    if (this.#at < count) this.#grow(count);
    this.#at -= count;
  }

  #grow(count: number): void {
    const done = this.size;
    if (done + count > MESSAGE_BYTES_MAX) throw new ProtobufFault(`the message is larger than ${MESSAGE_BYTES_MAX} bytes`);
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, done + count + FIRST_BUFFER_BYTES));
    this.#bytes.copy(larger, larger.length - done, this.#at);
    this.#at = larger.length - done;
    this.#bytes = larger;
  }
}
