// Writes what is large in pieces, each when the one before has left. So only one piece is ever encoded and in the buffers of a connection,
// and how much its reader takes is known.

import type { Writable } from "node:stream";
import type { LongBytes } from "./long-bytes.ts";
import type { Moving } from "./stalls.ts";

/** What is written at once; smaller answers are one write. A reader that takes less than this in half a minute is too slow. */
export const pieceBytes = 65_536;

export class PacedWrite implements Moving {
  readonly #to: Writable;
  readonly #done: () => void;
  readonly #onStall: () => void;
  #body: string | Uint8Array | LongBytes;
  #at = 0;

  /** `done` is called once, when the last piece has left; never after `stop`. */
  constructor(to: Writable, body: string | Uint8Array | LongBytes, done: () => void, onStall: () => void) {
    this.#to = to;
    this.#body = body;
    this.#done = done;
    this.#onStall = onStall;
  }

  start(): void {
    this.#next();
  }

  /** Lets go of what is left. */
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
      // The connection has ended, which its owner is notified of too.
      if (error || this.#body.length === 0) return;
      this.#at = end;
      if (end < this.#body.length) this.#next();
      else this.#done();
    });
  }
}

/** Never between the two halves of a character: each half alone would become another one. */
export function pieceEnd(body: string | Uint8Array | LongBytes, at: number): number {
  const end = Math.min(body.length, at + pieceBytes);
  if (typeof body !== "string" || end === body.length) return end;
  const last = body.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
