// What JSON will cost to read, found out from its bytes as they arrive and before any value is built. A few megabytes of `[[],[],[]]` become
// millions of objects, and building those holds everybody else up for seconds.

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openList = 0x5b;
const openObject = 0x7b;

/**
 * Counts values: an upper bound of them, names of members included. Takes the bytes in pieces of any size, cut anywhere. Of text that is not
 * JSON it counts something; a parser stops at the first mistake, and up to there both read the same.
 */
export class JsonScan {
  /** The value that everything else is inside of counts too. */
  values = 1;
  #inText = false;
  #escaped = false;

  push(bytes: Uint8Array): void {
    let values = this.values;
    let inText = this.#inText;
    let escaped = this.#escaped;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === quote) inText = false;
        else if (byte === backslash) escaped = true;
      } else if (byte === quote) inText = true;
      else if (byte === comma || byte === colon || byte === openList || byte === openObject) values++;
    }
    this.values = values;
    this.#inText = inText;
    this.#escaped = escaped;
  }
}
