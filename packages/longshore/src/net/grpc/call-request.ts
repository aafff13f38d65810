// Receives the request of a call: one message, perhaps compressed. Its bytes count against the budget of all requests from their arrival
// until the message is decoded or the call is over.
import type { ServerHttp2Stream } from "node:http2";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Moving, Stalls } from "../../core/stalls.ts";
import { areTooTiny } from "../http/tiny-pieces.ts";
import { type Frame, FrameReader } from "./frame.ts";
import { inflate, type Turns } from "./inflate.ts";
import { GrpcCode, GrpcError } from "./status.ts";

/** What all requests of a server share. */
export interface RequestShared {
  readonly receiving: ByteBudget;
  readonly receiveStalls: Stalls;
  readonly inflations: Turns;
}

export interface CallRequestOptions {
  readonly bytesMax: number;
  /** The compression of the caller's messages. */
  readonly encoding: string | undefined;
  /** When the request begins, in milliseconds of the server's clock. */
  readonly since: number;
  /** Called for each piece that arrives. */
  heard(bytes: number): void;
  /** Called once with the decompressed message; never after `release`. */
  whole(bytes: Buffer): void;
  /** Called when the message cannot be received; never after `release`. */
  failed(error: unknown): void;
}

export class CallRequest implements Moving {
  /** The time at which receiving began; Infinity once the message is complete. */
  since: number;
  readonly #shared: RequestShared;
  readonly #options: CallRequestOptions;
  #reader: FrameReader | undefined;
  #frame: Frame | undefined;
  #held = 0;
  #pieces = 0;
  #released = false;

  constructor(stream: ServerHttp2Stream, shared: RequestShared, options: CallRequestOptions) {
    this.#shared = shared;
    this.#options = options;
    this.#reader = new FrameReader(options.bytesMax);
    this.since = options.since;
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.once("end", () => this.#ended());
    shared.receiveStalls.watch(this);
  }

  /** Releases its memory. Later bytes are discarded until the caller has received the end of the call. Calling it again has no effect. */
  release(): void {
    this.#released = true;
    this.#shared.receiving.give(this.#held);
    this.#held = 0;
    this.#reader = undefined;
    this.#frame = undefined;
    this.#received();
  }

  progress(): number {
    return this.#held;
  }

  stalled(): void {
    this.#fail(new GrpcError(GrpcCode.DEADLINE_EXCEEDED, "The request came too slowly, or stopped half-way."));
  }

  #received(): void {
    this.since = Number.POSITIVE_INFINITY;
    this.#shared.receiveStalls.unwatch(this);
  }

  #receive(chunk: Buffer): void {
    this.#options.heard(chunk.length);
    if (this.#reader === undefined) return;
    const full = this.#hold(chunk.length);
    if (full !== undefined) return this.#fail(full);
    if (areTooTiny(++this.#pieces, this.#held)) return this.#fail(tooTiny(this.#pieces));
    try {
      for (const frame of this.#reader.push(chunk)) {
        if (this.#frame !== undefined)
          throw new GrpcError(GrpcCode.UNIMPLEMENTED, "The call has more than one message, and its method takes one.");
        this.#frame = frame;
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #ended(): void {
    if (this.#released) return;
    const frame = this.#frame;
    const { encoding, bytesMax, whole } = this.#options;
    this.#received();
    if ((this.#reader?.held ?? 0) > 0) return this.#fail(new GrpcError(GrpcCode.INTERNAL, "The request ends in the middle of a message."));
    if (frame === undefined) return this.#fail(new GrpcError(GrpcCode.UNIMPLEMENTED, "The call has no message, and its method takes one."));
    if (!frame.compressed) return whole(frame.bytes);
    const room = { bytesMax, take: (bytes: number) => this.#hold(bytes) };
    this.#shared.inflations
      .run(() => inflate(frame, encoding, room))
      .then(
        (bytes) => {
          if (!this.#released) whole(bytes);
        },
        (error: unknown) => this.#fail(error),
      );
  }

  /** Reserves room for bytes of the request, compressed or not; returns an error when there is no room. */
  #hold(bytes: number): GrpcError | undefined {
    const { receiving } = this.#shared;
    if (this.#released) return new GrpcError(GrpcCode.CANCELLED, "The call is over.");
    if (!receiving.take(bytes)) {
      const message = `The server is receiving ${receiving.max} bytes already, its limit (receivingBytes).`;
      return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
    }
    this.#held += bytes;
    return undefined;
  }

  #fail(error: unknown): void {
    if (!this.#released) this.#options.failed(error);
  }
}

function tooTiny(pieces: number): GrpcError {
  return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `The request came in ${pieces} pieces of a few bytes each; send larger ones.`);
}
