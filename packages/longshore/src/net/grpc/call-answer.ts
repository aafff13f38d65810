// The answer of a call: its head, its messages, its trailers. Messages count against the budget of all answers until they have left, large
// ones leave in pieces, and a reader that takes nothing for a while is cut.
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { PacedWrite, pieceBytes } from "../../core/paced-write.ts";
import type { Moving, Stalls } from "../../core/stalls.ts";
import { acceptedEncodings } from "./frame.ts";
import { GrpcCode, GrpcError } from "./status.ts";

const headFields = { ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": acceptedEncodings };
const okTrailers: Trailers = { "grpc-status": "0" };

type Trailers = Readonly<Record<string, string>>;

/** What all answers of a server share. */
export interface AnswerShared {
  readonly sending: ByteBudget;
  readonly sendStalls: Stalls;
}

export class CallAnswer implements Moving {
  readonly #stream: ServerHttp2Stream;
  readonly #shared: AnswerShared;
  readonly #onStall: () => void;
  /** Bytes of messages that have not left. */
  #unsent = 0;
  /** Grows with each message that has. */
  #moved = 0;
  #paced: PacedWrite | undefined;
  /** The large message that is being written, and how to release the code that waits for it. */
  #writing: Promise<void> | undefined;
  #settle: (() => void) | undefined;
  #opened = false;
  #trailers = okTrailers;

  constructor(stream: ServerHttp2Stream, shared: AnswerShared, onStall: () => void) {
    this.#stream = stream;
    this.#shared = shared;
    this.#onStall = onStall;
  }

  /** Bytes of messages that have not left. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Takes room for a message until it has left. @throws GrpcError when there is none. */
  reserve(bytes: number): void {
    const { sending, sendStalls } = this.#shared;
    if (!sending.take(bytes)) {
      const message = `The server has ${sending.max} bytes of answers that their readers have not taken, its limit (sendingBytes).`;
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
    }
    if (this.#unsent === 0) sendStalls.watch(this);
    this.#unsent += bytes;
  }

  /** Sends the head, if it has not been sent. */
  open(): void {
    const stream = this.#stream;
    if (this.#opened || stream.destroyed || stream.closed || stream.headersSent) return;
    this.#opened = true;
    stream.respond(headFields, { waitForTrailers: true, sendDate: false } as object);
    stream.once("wantTrailers", () => stream.sendTrailers(this.#trailers));
  }

  /** The one message of a unary call, for which room was taken, and the end. */
  whole(frame: Buffer): void {
    this.open();
    if (frame.length <= pieceBytes) this.#stream.end(frame);
    else this.#writePaced(frame, () => this.#stream.end());
  }

  /** One message of a stream, for which room was taken. Resolves when it has left, or never will. */
  async send(frame: Buffer): Promise<void> {
    this.open();
    const before = this.#writing;
    const written = frame.length > pieceBytes || before !== undefined ? this.#inTurn(before, frame) : this.#write(frame);
    await written;
    this.#sent(frame.length);
  }

  /** Ends the stream well, after what was sent. */
  end(): void {
    this.open();
    this.#endStream();
  }

  /** Ends the call with an error: with trailers alone when nothing was sent. */
  refuse(trailers: Trailers): void {
    const stream = this.#stream;
    this.#trailers = trailers;
    if (stream.destroyed || stream.closed) return;
    if (this.#opened) this.#endStream();
    else stream.respond({ ...headFields, ...trailers }, { endStream: true, sendDate: false } as object);
    endEarly(stream);
  }

  /** The stream is gone: gives back what it holds. */
  closed(): void {
    this.#shared.sendStalls.unwatch(this);
    this.#shared.sending.give(this.#unsent);
    this.#unsent = 0;
    this.#paced?.stop();
    this.#settle?.();
  }

  progress(): number {
    return this.#moved + (this.#paced?.progress() ?? 0);
  }

  stalled(): void {
    this.#onStall();
    this.#stream.close(constants.NGHTTP2_CANCEL);
  }

  #write(frame: Buffer): Promise<void> {
    return new Promise((resolve) => this.#stream.write(frame, () => resolve()));
  }

  /** A large message is written in pieces, and whatever is sent meanwhile comes after it. */
  #inTurn(before: Promise<void> | undefined, frame: Buffer): Promise<void> {
    const writing = this.#after(before, frame).then(() => {
      if (this.#writing === writing) this.#writing = undefined;
    });
    this.#writing = writing;
    return writing;
  }

  async #after(before: Promise<void> | undefined, frame: Buffer): Promise<void> {
    await before;
    if (this.#stream.destroyed || this.#stream.writableEnded) return;
    await new Promise<void>((resolve) => {
      this.#settle = resolve;
      this.#writePaced(frame, resolve);
    });
  }

  #writePaced(frame: Buffer, done: () => void): void {
    this.#paced = new PacedWrite(this.#stream, frame, done, () => {});
    this.#paced.start();
  }

  #sent(bytes: number): void {
    const given = Math.min(bytes, this.#unsent);
    this.#shared.sending.give(given);
    this.#unsent -= given;
    this.#moved++;
    if (this.#unsent === 0) this.#shared.sendStalls.unwatch(this);
  }

  /** After what was sent: a message must not end in its middle. */
  #endStream(): void {
    if (this.#writing === undefined) this.#stream.end();
    else void this.#writing.then(() => this.#stream.end());
  }
}

/**
 * Once the answer is complete the caller need not send the rest (RFC 9113, section 8.1). The answer must leave first: it is written in the
 * next turn, and Node 22 drops what a stream has not written yet when it is reset.
 */
export function endEarly(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  stream.resume();
  setImmediate(() => {
    if (!stream.closed && !stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}
