// What can be done with a request body: check its announced length, read a large one as a bounded stream, or discard it. body-reading.ts
// reads whole bodies.

import { isUtf8 } from "node:buffer";
import { type IncomingHttpHeaders, IncomingMessage } from "node:http";
import { Transform, type TransformCallback } from "node:stream";
import { pieceUnits, type Share } from "../../core/slices/loop-turns.ts";
import { areTooTiny } from "../http/tiny-pieces.ts";
import { bodyBrokeOff, bodyTooLarge, problemError } from "./problems.ts";

/** The result of reading a body: its text, or the reason why there is no text. */
export type BodyOutcome = { text: string } | "too-large" | "too-many-values" | "no-room" | "stalled" | "not-utf8";

/** True when the headers announce a body, by a length above zero or by chunked encoding. A chunked body may still be empty. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return length === undefined ? headers["transfer-encoding"] !== undefined : length !== "0";
}

/** True when the announced length alone is too large. A wrong length is detected while reading. */
export function announcesMoreThan(headers: IncomingHttpHeaders, bytesMax: number): boolean {
  const length = headers["content-length"];
  // A shorter number is always smaller, so most requests need no conversion.
  return length !== undefined && length.length >= String(bytesMax).length && Number(length) > bytesMax;
}

/**
 * A request whose body can be read directly from the parser. Workers send mostly small bodies, and for each body a Readable would take
 * about 4 us for its listeners, ticks and end. The parser calls `push` with every chunk and then with null.
 */
export class BodyRequest extends IncomingMessage {
  /** The connection's share of work in a turn of the event loop. */
  share: Share | undefined = undefined;
  /** Called once, when the body arrives in very many tiny pieces. */
  onTinyPieces: (() => void) | undefined = undefined;
  /** Receives the chunks instead of the stream. Must be set before the parser continues: in the same tick as the request event. */
  onChunk: ((chunk: Buffer | null) => void) | undefined = undefined;
  private pieces = 0;
  private bytes = 0;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null) this.count(chunk.length);
    if (this.onChunk === undefined) return super.push(chunk, encoding);
    this.onChunk(chunk);
    return true;
  }

  private count(bytes: number): void {
    this.share?.spend(pieceUnits);
    this.pieces++;
    this.bytes += bytes;
    if (!areTooTiny(this.pieces, this.bytes)) return;
    const { onTinyPieces } = this;
    this.onTinyPieces = undefined;
    onTinyPieces?.();
  }
}

/** Decoding replaces what is not UTF-8 by U+FFFD. This character is rare, so only a text that contains it is checked a second time. */
export function decodeBody(bytes: Buffer): BodyOutcome {
  const text = bytes.toString("utf8");
  return text.includes("\ufffd") && !isUtf8(bytes) ? "not-utf8" : { text };
}

/**
 * The body as a stream. It fails with LONGSHORE_LIMIT beyond `bytesMax`, and with LONGSHORE_BAD_INPUT when the client disconnects before
 * its end.
 */
export function boundedStream(request: IncomingMessage, bytesMax: number): Transform {
  let size = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, next: TransformCallback) {
      size += chunk.length;
      if (size > bytesMax) next(problemError(bodyTooLarge(bytesMax)));
      else next(null, chunk);
    },
  });
  // The client may disconnect before the route begins to read, and an error without a listener ends the process. A route that reads later
  // still gets the error.
  bounded.on("error", () => {});
  // An error of the stream unpipes the request without ending it: the rest is discarded after the refusal is written. The disconnect of a
  // client is no failure of the server, so it is not logged as one.
  request.on("error", () => bounded.destroy(problemError(bodyBrokeOff())));
  return request.pipe(bounded);
}

/**
 * Discards the rest of a body, so that the client can read its response and use the connection again. A client that sends more than
 * `bytesMax` after its response is disconnected.
 */
export function discardRest(request: IncomingMessage, bytesMax: number): void {
  let left = bytesMax;
  request.unpipe();
  request.on("data", (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.socket.destroy();
  });
  request.resume();
}
