// What JSON will cost to read, found out from its bytes as they arrive and before any value is built. A few megabytes of `[[],[],[]]`
// become millions of objects, and building those blocks all other requests for seconds.

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

/** An object with more names than this is kept as a table, which costs several times as much to build and to walk. */
const wideNames = 1_000;
/** What each further name of such an object counts. */
const wideWeight = 4;

/** Digits of one number beyond this count as values: turning a number of megabytes into a double costs as much as many small ones. */
const plainDigits = 32;

/**
 * Counts values: an upper bound of them, names of members included, those of very wide objects several times, and so are the digits of
 * very long numbers. Takes the bytes in pieces of any
 * size, cut anywhere. Of text that is not JSON it counts something; a parser stops at the first mistake, and up to there both read the same.
 */
export class JsonScan {
  /** The value that everything else is inside of counts too. */
  values = 1;
  /** How many lists and objects were open at once, at most. */
  deepest = 0;
  #inText = false;
  #escaped = false;
  #depth = 0;
  /** Digits in a row, up to here. */
  #digits = 0;
  /** Names of the object that is open at each depth; what is deeper than any JSON that is read shares the last place. */
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
