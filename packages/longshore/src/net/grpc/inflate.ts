// Decompresses messages. A few bytes may decompress to gigabytes. So the output is counted as it is produced, against the limit of one
// message and against the memory that all callers share. Few messages are decompressed at a time.
import { createGunzip } from "node:zlib";
import type { Frame } from "./frame.ts";
import { GrpcCode, GrpcError } from "./status.ts";

/** The limits of decompression. */
export interface Room {
  /** The limit of one message. */
  readonly bytesMax: number;
  /** Called for each piece of output; returns an error when there is no room for it. */
  take?(bytes: number): GrpcError | undefined;
}

/** The message of a frame. `encoding` is the other side's header for compressed messages. */
export async function inflate(frame: Frame, encoding: string | undefined, room: Room): Promise<Buffer> {
  if (!frame.compressed) return frame.bytes;
  if (encoding !== "gzip") {
    throw new GrpcError(GrpcCode.INTERNAL, "A message is marked as compressed, and the call names no encoding that compresses.");
  }
  return gunzip(frame.bytes, room);
}

function gunzip(packed: Buffer, { bytesMax, take }: Room): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    const unpacking = createGunzip();
    unpacking.on("data", (piece: Buffer) => {
      size += piece.length;
      const refusal = size > bytesMax ? tooLargeUnpacked(bytesMax) : take?.(piece.length);
      if (refusal === undefined) pieces.push(piece);
      else unpacking.destroy(refusal);
    });
    unpacking.on("end", () => resolve(Buffer.concat(pieces, size)));
    unpacking.on("error", (error) => {
      reject(error instanceof GrpcError ? error : new GrpcError(GrpcCode.INTERNAL, `The message cannot be unpacked: ${error.message}.`));
    });
    unpacking.end(packed);
  });
}

function tooLargeUnpacked(bytesMax: number): GrpcError {
  return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `The message has more than ${bytesMax} bytes when unpacked, the limit.`);
}

/** Limits the number of concurrent operations; the others wait in order. */
export class Turns {
  readonly #atOnce: number;
  readonly #waiting: (() => void)[] = [];
  /** The number of operations running now, and the maximum so far. */
  running = 0;
  most = 0;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= this.#atOnce) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.most = Math.max(this.most, ++this.running);
    try {
      return await work();
    } finally {
      // Passes the place to the next operation in the queue, or frees it.
      const next = this.#waiting.shift();
      if (next === undefined) this.running--;
      else next();
    }
  }
}
