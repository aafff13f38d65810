// The framing of gRPC messages: a byte for whether the message is compressed, its length in four bytes, big-endian, and the message. Chunks
// of the network may be cut anywhere.
import { GrpcCode, GrpcError } from "./status.ts";

/** The default size limit of a client, in both directions; the default of peers is 4 MiB. Larger content belongs into a blob. */
export const messageBytesDefault = 67_108_864;

const HEAD_BYTES = 5;
const PLAIN = 0;
const COMPRESSED = 1;
const none = Buffer.alloc(0);

export interface Frame {
  readonly compressed: boolean;
  /** May share memory with the chunk that it arrived in. */
  readonly bytes: Buffer;
}

export function frameOf(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = PLAIN;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** The first buffer for a message that arrives in parts. It grows only with the bytes that arrive, not with the announced length. */
const FIRST_BUFFER_BYTES = 16_384;

/** Joins chunks to frames. Holds at most one incomplete message, and refuses a message that its header announces as too large. */
export class FrameReader {
  readonly #bytesMax: number;
  /** An incomplete frame: the first `#held` bytes are valid. */
  #buffer: Buffer = none;
  #held = 0;
  /** The bytes that must arrive before the next step: those of the frame's header, then those of the whole frame. */
  #needed = HEAD_BYTES;

  constructor(bytesMax: number = messageBytesDefault) {
    this.#bytesMax = bytesMax;
  }

  /** The bytes of an incomplete frame. Must be 0 at the end of a body. */
  get held(): number {
    return this.#held;
  }

  /** Returns the frames that this chunk completes. @throws GrpcError for a frame that is too large or invalid. */
  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    let at = 0;
    while (this.#held > 0) {
      const missing = this.#needed - this.#held;
      if (chunk.length - at < missing) {
        this.#hold(chunk, at);
        return frames;
      }
      this.#hold(chunk, at, at + missing);
      at += missing;
      if (this.#needed === HEAD_BYTES) this.#needed += this.#lengthAt(this.#buffer, 0);
      if (this.#held === this.#needed) frames.push(this.#complete());
    }
    // Whole frames are not copied.
    while (chunk.length - at >= HEAD_BYTES) {
      const end = at + HEAD_BYTES + this.#lengthAt(chunk, at);
      if (end > chunk.length) {
        this.#needed = end - at;
        break;
      }
      frames.push({ compressed: chunk[at] === COMPRESSED, bytes: chunk.subarray(at + HEAD_BYTES, end) });
      at = end;
    }
    if (at < chunk.length) this.#hold(chunk, at);
    return frames;
  }

  #hold(chunk: Buffer, start: number, end = chunk.length): void {
    const total = this.#held + end - start;
    if (total > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(total, this.#buffer.length * 2, Math.min(FIRST_BUFFER_BYTES, this.#needed)));
      this.#buffer.copy(larger, 0, 0, this.#held);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#held, start, end);
    this.#held = total;
  }

  #complete(): Frame {
    const frame = { compressed: this.#buffer[0] === COMPRESSED, bytes: this.#buffer.subarray(HEAD_BYTES, this.#held) };
    this.#buffer = none;
    this.#held = 0;
    this.#needed = HEAD_BYTES;
    return frame;
  }

  #lengthAt(bytes: Buffer, at: number): number {
    const flag = bytes[at] as number;
    if (flag !== PLAIN && flag !== COMPRESSED) {
      throw new GrpcError(GrpcCode.INTERNAL, `A message begins with the byte ${flag}, expected 0 (plain) or 1 (compressed).`);
    }
    const length = bytes.readUInt32BE(at + 1);
    if (length > this.#bytesMax) throw tooLarge(length, this.#bytesMax);
    return length;
  }
}

export function tooLarge(bytes: number, bytesMax: number): GrpcError {
  return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `The message has ${bytes} bytes, the limit is ${bytesMax}.`);
}

/** The accepted encodings of requests; responses are not compressed. */
export const acceptedEncodings = "identity,gzip";

/** Refuses an unknown encoding, and names the accepted ones. */
export function refuseEncoding(encoding: string | undefined): GrpcError | undefined {
  if (encoding === undefined || encoding === "identity" || encoding === "gzip") return undefined;
  return new GrpcError(GrpcCode.UNIMPLEMENTED, `The encoding ${JSON.stringify(encoding)} is not supported, expected ${acceptedEncodings}.`);
}
