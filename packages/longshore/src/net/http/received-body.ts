// A JSON body that a worker receives: a response, or the request of a runtime that calls it. The sender may be faulty or hostile, so bytes
// and values are counted as they arrive, before any value is built. Sixty megabytes of `{},{},{}` would block a worker for a minute.

import { JsonScan } from "../../core/json/json-scan.ts";

/**
 * The maximum number of JSON values in one body: enough for thirty tasks with the largest inputs. Parsing this many takes about half a
 * second.
 */
export const receivedValuesMax = 4_194_304;

/**
 * The maximum nesting of one body. A value that a template makes may have 500 levels, and the message around it adds some. Without this
 * limit, three megabytes of `[[[[` would take seconds to parse.
 */
const receivedDepthMax = 1_000;
/** Up to this size a body is not counted, because it cannot block the worker with any content. */
const smallBytes = 65_536;

export function tooLarge(bytesMax: number): string {
  return `The body is larger than ${bytesMax} bytes.`;
}

export class ReceivedBody {
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  /** Undefined while the body is small. */
  #scan: JsonScan | undefined;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Adds the next piece. Returns the reason why the body is refused; undefined while it is within the limits. */
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
