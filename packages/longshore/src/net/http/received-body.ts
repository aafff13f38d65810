// A body of JSON that a worker receives: the answer to a request of its own, or the request of a runtime that calls it. What sends it may be
// wrong or hostile, so bytes and values are counted as they arrive, before anything is built. Sixty megabytes of `{},{},{}` hold up a worker
// for a minute, in which it beats for nothing that it holds.

import { JsonScan } from "../../core/json/json-scan.ts";

/** Values of one body: a poll that brings thirty tasks with the largest inputs that the server takes. Read in about half a second. */
export const receivedValuesMax = 4_194_304;

/** Levels of one body: a value may have 500 where it is made, and what carries it some more. Three megabytes of `[[[[` take seconds to read. */
const receivedDepthMax = 1_000;
/** What is smaller cannot hold anything up, whatever it holds. */
const smallBytes = 65_536;

export function tooLarge(bytesMax: number): string {
  return `The body is larger than ${bytesMax} bytes.`;
}

export class ReceivedBody {
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  /** Absent while the body is small. */
  #scan: JsonScan | undefined;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes the next piece. What it returns is why no more is read; undefined while all is well. */
  push(chunk: Buffer): string | undefined {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) return tooLarge(this.#bytesMax);
    this.#chunks.push(chunk);
    return this.#bytes > smallBytes ? this.#count(chunk) : undefined;
  }

  bytes(): Buffer {
    return this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks, this.#bytes);
  }

  #count(chunk: Buffer): string | undefined {
    if (this.#scan === undefined) {
      this.#scan = new JsonScan();
      for (const one of this.#chunks) this.#scan.push(one);
    } else this.#scan.push(chunk);
    const { values, deepest } = this.#scan;
    if (deepest > receivedDepthMax) return `The body is nested deeper than ${receivedDepthMax} levels.`;
    return values > receivedValuesMax ? `The body has more than ${receivedValuesMax} values.` : undefined;
  }
}
