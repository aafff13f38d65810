// The response of a call: its headers, its messages, its trailers. Messages count against the budget of all responses until they are sent.
// Large messages are sent in pieces, and a reader that takes nothing for a while is disconnected.
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { PacedWrite, pieceBytes } from "../../core/paced-write.ts";
import type { Moving, Stalls } from "../../core/stalls.ts";
import { acceptedEncodings } from "./frame.ts";
import { GrpcCode, GrpcError } from "./status.ts";

const headFields = { ":status": 200, "content-type": "application/grpc+proto", "grpc-accept-encoding": acceptedEncodings };
const okTrailers: Trailers = { "grpc-status": "0" };

type Trailers = Readonly<Record<string, string>>;

/** What all responses of a server share. */
export interface AnswerShared {
  readonly sending: ByteBudget;
  readonly sendStalls: Stalls;
}

export class CallAnswer implements Moving {
  readonly #stream: ServerHttp2Stream;
  readonly #shared: AnswerShared;
  readonly #onStall: () => void;
  /** Bytes of messages that are not sent yet. */
  #unsent = 0;
  /** Grows with each message that was sent. */
  #moved = 0;
  #paced: PacedWrite | undefined;
  /** The large message that is being written, and a function that continues the code that waits for it. */
  #writing: Promise<void> | undefined;
  #settle: (() => void) | undefined;
  #opened = false;
  #trailers = okTrailers;

  constructor(stream: ServerHttp2Stream, shared: AnswerShared, onStall: () => void) {
    this.#stream = stream;
    this.#shared = shared;
    this.#onStall = onStall;
  }

  /** Bytes of messages that are not sent yet. */
  get unsent(): number {
    return this.#unsent;
  }

  /** Reserves room for a message until it is sent. @throws GrpcError when there is no room. */
  reserve(bytes: number): void {
    const { sending, sendStalls } = this.#shared;
    if (!sending.take(bytes)) {
      const message = `The server has ${sending.max} bytes of answers that their readers have not taken, its limit (sendingBytes).`;
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, message);
    }
    if (this.#unsent === 0) sendStalls.watch(this);
    this.#unsent += bytes;
  }

  /** Sends the headers, if they are not sent yet. */
  open(): void {
    const stream = this.#stream;
    if (this.#opened || stream.destroyed || stream.closed || stream.headersSent) return;
    this.#opened = true;
    stream.respond(headFields, { waitForTrailers: true, sendDate: false } as object);
    stream.once("wantTrailers", () => stream.sendTrailers(this.#trailers));
  }

  /** Sends the only message of a unary call, for which room is reserved, and ends the stream. */
  whole(frame: Buffer): void {
    this.open();
    if (frame.length <= pieceBytes) this.#stream.end(frame);
    else this.#writePaced(frame, () => this.#stream.end());
  }

  /** Sends one message of a stream, for which room is reserved. Resolves when it is sent, or cannot be sent any more. */
  async send(frame: Buffer): Promise<void> {
    this.open();
    const before = this.#writing;
    const written = frame.length > pieceBytes || before !== undefined ? this.#inTurn(before, frame) : this.#write(frame);
    await written;
    this.#sent(frame.length);
  }

  /** Ends the stream successfully, after everything that was sent. */
  end(): void {
    this.open();
    this.#endStream();
  }

  /** Ends the call with an error: with trailers only when nothing was sent. */
  refuse(trailers: Trailers): void {
    const stream = this.#stream;
    this.#trailers = trailers;
    if (stream.destroyed || stream.closed) return;
    if (this.#opened) this.#endStream();
    else stream.respond({ ...headFields, ...trailers }, { endStream: true, sendDate: false } as object);
    endEarly(stream);
  }

  /** The stream has closed: releases its room. */
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

  /** Writes a large message in pieces; messages that are sent later come after it. */
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

  /** Ends after pending writes: a message must not end in its middle. */
  #endStream(): void {
    if (this.#writing === undefined) this.#stream.end();
    else void this.#writing.then(() => this.#stream.end());
  }
}

/**
 * Ends the request side once the response is complete: the caller need not send the rest (RFC 9113, section 8.1). The response must be sent
 * first. It is written in the next turn, and Node 22 drops it when the stream is reset before.
 */
export function endEarly(stream: ServerHttp2Stream): void {
  if (stream.readableEnded) return;
  stream.resume();
  setImmediate(() => {
    if (!stream.closed && !stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
}
