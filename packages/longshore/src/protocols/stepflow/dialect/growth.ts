// How much text the references of one value contain. A flow is small and may name a large value many times: a thousand references to an
// input of 10 MB would be 10 GB of text, and steps that each repeat the one before double with every step.

import type { Json } from "../../../core/json/json.ts";
import { payloadRequestBytes } from "../../../core/payload-size.ts";
import { textSize } from "../../../core/text-size.ts";

/** Characters of all references in one value, besides the largest of them: what is passed on as it is may be as large as it was. */
export const grownCharsMax = payloadRequestBytes;

export class Growth {
  #chars = 0;
  #largest = 0;

  /** False from the reference on that makes it too much; what comes then is not looked at. */
  took(value: Json): boolean {
    if (this.#isOver()) return false;
    // Counted to where the answer is known.
    const chars = textSize(value, this.#largest + grownCharsMax);
    this.#chars += chars;
    this.#largest = Math.max(this.#largest, chars);
    return !this.#isOver();
  }

  #isOver(): boolean {
    return this.#chars - this.#largest > grownCharsMax;
  }
}
