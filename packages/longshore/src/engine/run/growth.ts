// Limits the total size of the references in one value. A small definition may name a large value many times: a thousand references to an
// input of 10 MB make 10 GB of text. When each step repeats the output of the step before twice, the size doubles with every step.

import type { Json } from "../../core/json/json.ts";
import { payloadRequestBytes } from "../../core/payload-size.ts";
import { type CountedSize, sizeOf, type ValueSize } from "../../core/text-size.ts";

/**
 * Maximum size of a value in addition to the largest value that it refers to. A value that is passed on unchanged may keep its size.
 * Writing half a million values takes a tenth of a second, and so does reading them.
 */
export const grownMax: ValueSize = { chars: payloadRequestBytes, values: 524_288 };

/** The limit in words, for error texts. */
export const grownText = `${grownMax.chars} characters or ${grownMax.values} values`;

/** Counts the values of references one by one, for a dialect that reports the limit with its own text. */
export class Growth {
  #chars = 0;
  #values = 0;
  #largest: ValueSize = { chars: 0, values: 0 };

  /** Returns false for the reference that exceeds the limit and for all later ones, which are not counted. */
  took(value: Json): boolean {
    if (this.#isOver()) return false;
    // Counts only until the limit is exceeded.
    const { chars, values } = sizeOf(value, beside(this.#largest));
    this.#chars += chars;
    this.#values += values;
    this.#largest = { chars: Math.max(this.#largest.chars, chars), values: Math.max(this.#largest.values, values) };
    return !this.#isOver();
  }

  #isOver(): boolean {
    const max = beside(this.#largest);
    return this.#chars > max.chars || this.#values > max.values;
  }
}

/**
 * The size of a value; undefined when it is too large to be stored. `largest` is called only for a large value: it returns the size of the
 * largest value that this one was made from.
 */
export function keptSize(value: Json, largest: () => ValueSize): CountedSize | undefined {
  return sizeWithin(value, grownMax) ?? sizeWithin(value, beside(largest()));
}

function sizeWithin(value: Json, max: ValueSize): CountedSize | undefined {
  const size = sizeOf(value, max);
  return size.chars > max.chars || size.values > max.values ? undefined : size;
}

function beside(largest: ValueSize): ValueSize {
  return { chars: largest.chars + grownMax.chars, values: largest.values + grownMax.values };
}
