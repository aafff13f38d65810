// A frame is a length of four bytes and a JSON array of messages: all messages that one side sends in one turn of the event loop.
//
// Each message becomes text when it is sent, not when its frame is written. So a value that JSON cannot carry fails its own caller, a
// caller may change its value afterwards, and a repeated call is the same text.

import type { Json } from "../../core/json/json.ts";
import { JsonScan } from "../../core/json/json-scan.ts";
import { sizeOf } from "../../core/text-size.ts";

const lengthBytes = 4;

/**
 * The values of one frame as JsonScan counts them, and its levels: parsing them takes up to 50 ms. A frame of 64 MiB may have 20 million
 * values: half a minute and gigabytes. Requests and replies carry their values as texts, each of which counts as one.
 */
const frameValues = 1_048_576;
const frameLevels = 10_000;
/**
 * The values that one message may carry: as many as a request with a definition. JsonScan counts up to two and a half times as many,
 * because it does not build them.
 */
export const messageValues = 262_144;
/** A shorter frame is not counted. */
const countedBytes = 262_144;

/** The bytes received are not a valid frame. The link is cut. */
export class BadFrame extends Error {}

/** Collects bytes and returns whole frames. */
export class FrameReader {
  /** The largest frame that is accepted. */
  bytesMax: number;
  #chunks: Buffer[] = [];
  #held = 0;
  /** The bytes of the frame that is arriving that `#scan` has seen. */
  #scanned = 0;
  #scan = new JsonScan();
  /** How many bytes the next frame needs, as far as known. */
  #needed = lengthBytes;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Calls `frame` for each frame that is complete now. Throws a BadFrame for bytes that cannot be one. */
  take(chunk: Buffer, frame: (messages: readonly unknown[]) => void): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    if (this.#held < this.#needed) return this.#count(chunk, this.#needed - lengthBytes);
    // The chunks are joined only here, so that a large frame in many chunks is copied once.
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#held);
    let at = 0;
    for (;;) {
      this.#needed = lengthBytes;
      if (bytes.length - at < lengthBytes) break;
      const size = bytes.readUInt32BE(at);
      if (size > this.bytesMax) throw new BadFrame(`A frame has ${size} bytes, and at most ${this.bytesMax} are allowed.`);
      const end = at + lengthBytes + size;
      this.#needed = lengthBytes + size;
      this.#count(bytes.subarray(at + lengthBytes + this.#scanned, end), size);
      if (bytes.length < end) break;
      if (this.#scanned > 0) this.#scan = new JsonScan();
      this.#scanned = 0;
      const messages = parse(bytes.toString("utf8", at + lengthBytes, end));
      at = end;
      frame(messages);
    }
    this.#held = bytes.length - at;
    this.#chunks = this.#held === 0 ? [] : [bytes.subarray(at)];
  }

  /** Counts the values of a frame while it arrives, before any is built. */
  #count(bytes: Buffer, size: number): void {
    if (size <= countedBytes) return;
    this.#scanned += bytes.length;
    this.#scan.push(bytes);
    if (this.#scan.values > frameValues) throw new BadFrame(`A frame has more than ${frameValues} values.`);
    if (this.#scan.deepest > frameLevels) throw new BadFrame(`A frame has more than ${frameLevels} levels.`);
  }
}

function parse(text: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new BadFrame("A frame is not JSON.");
  }
  if (!Array.isArray(value)) throw new BadFrame("A frame is not an array of messages.");
  return value;
}

/** Makes one frame of messages that are JSON already. */
function frameOf(texts: readonly string[]): Buffer {
  const text = `[${texts.join(",")}]`;
  const size = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(lengthBytes + size);
  frame.writeUInt32BE(size);
  // Text with as many bytes as characters is ASCII, for which this encoding is the same and faster.
  frame.write(text, lengthBytes, size === text.length ? "latin1" : "utf8");
  return frame;
}

/** Divides messages into frames of about `charsMax` characters. A longer message gets a frame of its own. */
export function framesOf(texts: readonly string[], charsMax: number): Buffer[] {
  const frames: Buffer[] = [];
  let from = 0;
  let chars = 0;
  for (let at = 0; at < texts.length; at++) {
    const length = (texts[at] as string).length + 1;
    if (at > from && chars + length > charsMax) {
      frames.push(frameOf(texts.slice(from, at)));
      from = at;
      chars = 0;
    }
    chars += length;
  }
  frames.push(frameOf(from === 0 ? texts : texts.slice(from)));
  return frames;
}

/**
 * Whether a message alone would make a frame that is too large. Counts bytes and values only when the number of characters comes near the
 * limit.
 */
export function exceeds(text: string, carried: unknown, bytesMax: number): boolean {
  if (text.length > countedBytes && hasMany(carried)) return true;
  // A character takes three bytes at most, and the brackets two.
  if (text.length * 3 + 2 <= bytesMax) return false;
  return Buffer.byteLength(text) + 2 > bytesMax;
}

function hasMany(carried: unknown): boolean {
  return sizeOf(carried as Json, { chars: Number.POSITIVE_INFINITY, values: messageValues }).values > messageValues;
}
