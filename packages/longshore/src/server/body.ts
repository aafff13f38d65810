// Reading request bodies: whole as text for small ones, as a bounded stream for large ones, and thrown away when nobody wants them.

import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Transform, type TransformCallback } from "node:stream";
import { bodyLimitError } from "./problems.ts";

/** What became of a body: its text, or why there is none. */
export type BodyOutcome = { text: string } | "too-large" | "not-utf8";

/** True when a body is announced: by a length above zero or by chunked encoding, which may turn out empty. */
export function announcesBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return length === undefined ? request.headers["transfer-encoding"] !== undefined : length !== "0";
}

/** True when the announced length alone is reason to refuse. A length that lies is caught while reading. */
export function announcesMoreThan(request: IncomingMessage, bytesMax: number): boolean {
  const length = request.headers["content-length"];
  return length !== undefined && Number(length) > bytesMax;
}

/**
 * Reads the whole body and calls `done` once; never when the client goes away half-way. With `keep` false the bytes are only counted.
 * The usual body is one chunk, which is decoded without being copied.
 */
export function readText(request: IncomingMessage, bytesMax: number, keep: boolean, done: (outcome: BodyOutcome) => void): void {
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let size = 0;
  const onData = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > bytesMax) {
      request.removeListener("data", onData);
      request.removeListener("end", onEnd);
      done("too-large");
    } else if (!keep) return;
    else if (first === undefined) first = chunk;
    else if (chunks === undefined) chunks = [first, chunk];
    else chunks.push(chunk);
  };
  const onEnd = (): void => {
    if (first === undefined) return done({ text: "" });
    const whole = chunks === undefined ? first : Buffer.concat(chunks, size);
    done(isUtf8(whole) ? { text: whole.toString("utf8") } : "not-utf8");
  };
  request.on("data", onData);
  request.on("end", onEnd);
}

/** The body as a stream that fails with LONGSHORE_LIMIT beyond `bytesMax`, or when the client goes away half-way. */
export function boundedStream(request: IncomingMessage, bytesMax: number): Transform {
  let size = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, next: TransformCallback) {
      size += chunk.length;
      if (size > bytesMax) next(bodyLimitError(bytesMax));
      else next(null, chunk);
    },
  });
  // An error of the stream unpipes the request without ending it: what is left is discarded once the refusal is written.
  request.on("error", (error) => bounded.destroy(error));
  return request.pipe(bounded);
}

/**
 * Throws away what is still coming, so that the client gets to read its answer and may go on using the connection.
 * Who sends more than `bytesMax` after being answered is cut.
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
