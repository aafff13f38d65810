// A long response body as bytes, in pieces that are never joined: copying or encoding many megabytes at once would block the event loop.

import { pieceBytes, pieceEnd } from "./paced-write.ts";

export class LongBytes {
  readonly byteLength: number;
  readonly #pieces: readonly Buffer[];
  /** The index and the first byte of the piece that was read last. A body is usually read from beginning to end. */
  #at = 0;
  #begin = 0;

  constructor(pieces: readonly Buffer[]) {
    this.#pieces = pieces;
    this.byteLength = pieces.reduce((bytes, piece) => bytes + piece.length, 0);
  }

  get length(): number {
    return this.byteLength;
  }

  /** The bytes from `from` to `end`; copied only when they span several pieces. */
  subarray(from: number, end: number): Uint8Array {
    if (from < this.#begin) {
      this.#at = 0;
      this.#begin = 0;
    }
    const found: Buffer[] = [];
    for (let piece = this.#pieces[this.#at]; piece !== undefined; piece = this.#pieces[this.#at]) {
      if (from < this.#begin + piece.length) found.push(piece.subarray(Math.max(0, from - this.#begin), end - this.#begin));
      if (end < this.#begin + piece.length) break;
      this.#begin += piece.length;
      this.#at++;
    }
    return found.length === 1 ? (found[0] as Buffer) : Buffer.concat(found);
  }
}

/** Encodes consecutive texts as bytes. `turn` is awaited after each piece, with its length. */
export async function encodeInTurns(texts: Iterable<string>, turn: (bytes: number) => Promise<void>): Promise<LongBytes> {
  const pieces: Buffer[] = [];
  let [batch, chars]: [string[], number] = [[], 0];
  const encode = () => {
    const piece = Buffer.from(batch.join(""));
    pieces.push(piece);
    [batch, chars] = [[], 0];
    return piece.length;
  };
  for (const text of texts) {
    for (let at = 0; at < text.length; ) {
      const end = pieceEnd(text, at);
      batch.push(end - at === text.length ? text : text.slice(at, end));
      chars += end - at;
      at = end;
      if (chars >= pieceBytes) await turn(encode());
    }
  }
  if (chars > 0) await turn(encode());
  return new LongBytes(pieces);
}
