// Writes large content in pieces; each piece is written when the one before has been sent. So only one piece at a time is encoded and in
// the buffers of a connection, and the speed of the reader is known.

import type { Writable } from "node:stream";
import type { LongBytes } from "./long-bytes.ts";
import type { Moving } from "./stalls.ts";

/** The size of one write; smaller responses are one write. A reader that takes less than this in half a minute is too slow. */
export const pieceBytes = 65_536;

export class PacedWrite implements Moving {
  readonly #to: Writable;
  readonly #done: () => void;
  readonly #onStall: () => void;
  #body: string | Uint8Array | LongBytes;
  #at = 0;

  /** `done` is called once, when the last piece has been sent; never after `stop`. */
  constructor(to: Writable, body: string | Uint8Array | LongBytes, done: () => void, onStall: () => void) {
    this.#to = to;
    this.#body = body;
    this.#done = done;
    this.#onStall = onStall;
  }

  start(): void {
    this.#next();
  }

  /** Drops the rest of the content. */
  stop(): void {
    this.#body = "";
  }

  progress(): number {
    return this.#at;
  }

  stalled(): void {
    this.#onStall();
  }

  #next(): void {
    const end = pieceEnd(this.#body, this.#at);
    const piece = typeof this.#body === "string" ? this.#body.slice(this.#at, end) : this.#body.subarray(this.#at, end);
    this.#to.write(piece, (error) => {
      // The connection has ended; its owner is notified separately.
      if (error || this.#body.length === 0) return;
      this.#at = end;
      if (end < this.#body.length) this.#next();
      else this.#done();
    });
  }
}

/** The end of the next piece. Never splits a surrogate pair: each half alone would become another character. */
export function pieceEnd(body: string | Uint8Array | LongBytes, at: number): number {
  const end = Math.min(body.length, at + pieceBytes);
  if (typeof body !== "string" || end === body.length) return end;
  const last = body.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
