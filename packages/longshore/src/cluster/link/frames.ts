// A frame is a length of four bytes and a JSON array of messages: all messages that one side sends in one turn of the event loop.
//
// Each message becomes text when it is sent, not when its frame is written. So a value that JSON cannot carry fails its own caller, a
// caller may change its value afterwards, and a repeated call is the same text.

const lengthBytes = 4;

/** The bytes received are not a valid frame. The link is cut. */
export class BadFrame extends Error {}

/** Collects bytes and returns whole frames. */
export class FrameReader {
  /** The largest frame that is accepted. */
  bytesMax: number;
  #chunks: Buffer[] = [];
  #held = 0;
  /** How many bytes the next frame needs, as far as known. */
  #needed = lengthBytes;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Calls `frame` for each frame that is complete now. Throws a BadFrame for bytes that cannot be one. */
  take(chunk: Buffer, frame: (messages: readonly unknown[]) => void): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    if (this.#held < this.#needed) return;
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
      if (bytes.length < end) break;
      const messages = parse(bytes.toString("utf8", at + lengthBytes, end));
      at = end;
      frame(messages);
    }
    this.#held = bytes.length - at;
    this.#chunks = this.#held === 0 ? [] : [bytes.subarray(at)];
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

/** Whether a message alone would make a frame that is too large. It counts bytes only when the number of characters is near the limit. */
export function exceeds(text: string, bytesMax: number): boolean {
  // A character takes three bytes at most, and the brackets two.
  if (text.length * 3 + 2 <= bytesMax) return false;
  return Buffer.byteLength(text) + 2 > bytesMax;
}
