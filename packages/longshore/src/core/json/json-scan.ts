// Estimates what JSON costs to read, from its bytes as they arrive and before any value is built. A few megabytes of `[[],[],[]]` become
// millions of objects, and building them blocks all other requests for seconds.

import { jsonDepthMax } from "./json.ts";

const quote = 0x22;
const backslash = 0x5c;
const zero = 0x30;
const nine = 0x39;
const comma = 0x2c;
const colon = 0x3a;
const openList = 0x5b;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** JavaScript stores an object with more names than this as a hash table, which costs several times as much. */
const wideNames = 1_000;
/** The weight of each further name of such an object. */
const wideWeight = 4;

/** Further digits of a number count as values: parsing a number of megabytes costs as much as many small ones. */
const plainDigits = 32;

/**
 * Counts an upper bound of the values, including the names of members. Names of very wide objects count several times, and further digits
 * of very long numbers count too. Accepts the bytes in pieces of any size, cut anywhere. For invalid JSON, the count is meaningful up to
 * the first mistake, which is where a parser stops.
 */
export class JsonScan {
  /** Starts at 1 for the outermost value. */
  values = 1;
  /** The largest number of lists and objects that were open at once. */
  deepest = 0;
  #inText = false;
  #escaped = false;
  #depth = 0;
  /** The number of digits in a row so far. */
  #digits = 0;
  /** The number of names of the open object at each depth. Depths beyond the limit share the last place. */
  readonly #names = new Uint32Array(jsonDepthMax + 2);

  push(bytes: Uint8Array): void {
    let values = this.values;
    let inText = this.#inText;
    let escaped = this.#escaped;
    let digits = this.#digits;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === quote) inText = false;
        else if (byte === backslash) escaped = true;
      } else if (byte >= zero && byte <= nine) {
        if (++digits > plainDigits) values++;
        continue;
      } else if (byte === quote) inText = true;
      else if (byte === comma) values++;
      else if (byte === colon) values += this.#name();
      else if (byte === openList || byte === openObject) {
        values++;
        this.#open();
      } else if (byte === closeList || byte === closeObject) this.#depth--;
      digits = 0;
    }
    this.values = values;
    this.#inText = inText;
    this.#escaped = escaped;
    this.#digits = digits;
  }

  #open(): void {
    if (++this.#depth > this.deepest) this.deepest = this.#depth;
    this.#names[this.#place()] = 0;
  }

  #name(): number {
    const place = this.#place();
    const names = (this.#names[place] as number) + 1;
    this.#names[place] = names;
    return names > wideNames ? wideWeight : 1;
  }

  #place(): number {
    return Math.max(0, Math.min(this.#depth, jsonDepthMax + 1));
  }
}
