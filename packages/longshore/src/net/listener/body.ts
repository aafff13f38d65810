// Request bodies: their announced length, as a bounded stream for large ones, and discarded when they are not needed. Those that are read
// whole are in body-reading.ts.

import { isUtf8 } from "node:buffer";
import { type IncomingHttpHeaders, IncomingMessage } from "node:http";
import { Transform, type TransformCallback } from "node:stream";
import { pieceUnits, type Share } from "../../core/slices/loop-turns.ts";
import { areTooTiny } from "../http/tiny-pieces.ts";
import { bodyTooLarge, problemError } from "./problems.ts";

/** What became of a body: its text, or why there is none. */
export type BodyOutcome = { text: string } | "too-large" | "too-many-values" | "no-room" | "stalled" | "not-utf8";

/** True when a body is announced: by a length above zero or by chunked encoding, which may turn out empty. */
export function announcesBody(headers: IncomingHttpHeaders): boolean {
  const length = headers["content-length"];
  return length === undefined ? headers["transfer-encoding"] !== undefined : length !== "0";
}

/** True when the announced length alone is reason to refuse. A wrong length is detected while reading. */
export function announcesMoreThan(headers: IncomingHttpHeaders, bytesMax: number): boolean {
  const length = headers["content-length"];
  // Fewer digits mean less; most requests are spared the conversion.
  return length !== undefined && length.length >= String(bytesMax).length && Number(length) > bytesMax;
}

/**
 * A request whose body can be taken as it is parsed. Small bodies are the whole traffic of a worker, and a Readable costs about 4 us each
 * for its listeners, ticks and end; `push`, which the parser calls, is the one place that gets every chunk and then null.
 */
export class BodyRequest extends IncomingMessage {
  /** What its connection may do in a turn of the event loop. */
  share: Share | undefined = undefined;
  /** Called once, when the body comes in very many tiny pieces. */
  onTinyPieces: (() => void) | undefined = undefined;
  /** Takes the chunks instead of the stream, when set before the parser continues: in the same tick as the request's event. */
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

/** The replacement character is rare enough that only a text which holds one is looked at twice. */
export function decodeBody(bytes: Buffer): BodyOutcome {
  const text = bytes.toString("utf8");
  return text.includes("\ufffd") && !isUtf8(bytes) ? "not-utf8" : { text };
}

/** The body as a stream that fails with LONGSHORE_LIMIT beyond `bytesMax`, or when the client disconnects half-way. */
export function boundedStream(request: IncomingMessage, bytesMax: number): Transform {
  let size = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, next: TransformCallback) {
      size += chunk.length;
      if (size > bytesMax) next(problemError(bodyTooLarge(bytesMax)));
      else next(null, chunk);
    },
  });
  // An error of the stream unpipes the request without ending it: what is left is discarded once the refusal is written.
  request.on("error", (error) => bounded.destroy(error));
  return request.pipe(bounded);
}

/**
 * Discards what is still coming, so that the client can read its answer and use the connection again.
 * A client that sends more than `bytesMax` after its answer is cut.
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
