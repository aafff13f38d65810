// What one template reads of its run, and whether that, or what it makes of it, is too much. Every template of every dialect is worked out
// under this watch, because a decision cannot stop half-way: what it reads and makes is in memory at once, and everything else waits.

import type { Json } from "../../core/json/json.ts";
import { payloadRequestBytes } from "../../core/payload-size.ts";
import { sizeOf, type ValueSize } from "../../core/text-size.ts";
import { grownText, keptSize } from "./growth.ts";

/**
 * Characters of the inputs and outputs of steps that one template reads, besides the largest: twice what it may make of them. A template
 * that takes a little of each of many large outputs is stopped by this alone.
 */
export const readCharsMax = 2 * payloadRequestBytes;

/**
 * Lists and objects inside each other in what a template makes: five times what a request may bring, so that there is room for what is put around a
 * value, and half of what JSON readers of other languages take. JSON.stringify overflows the stack from some thousands on.
 */
const madeDepthMax = 500;

/** No value is larger: it would not have been kept. */
const countedMax: ValueSize = { chars: 16 * payloadRequestBytes, values: payloadRequestBytes };

export class TemplateReads {
  /** Made when they are needed: most templates read one value, and none of a step. */
  #values: Json[] | undefined = undefined;
  #steps: Set<number> | undefined = undefined;
  #chars = 0;
  #largest = 0;

  /** Passes on a value that the template has been given whole. */
  given<Value extends Json>(value: Value): Value {
    if (this.#values === undefined) this.#values = [value];
    else this.#values.push(value);
    return value;
  }

  /** The template reads a step whose texts have so many characters. Again is harmless. */
  step(node: number, chars: number): void {
    this.#steps ??= new Set();
    if (this.#steps.has(node)) return;
    this.#steps.add(node);
    this.#chars += chars;
    this.#largest = Math.max(this.#largest, chars);
  }

  /** Why the template must not be worked out, or what it has made must not be kept; undefined when all is well. */
  refusal(made: Json | undefined): string | undefined {
    if (this.#chars - this.#largest > readCharsMax)
      return `the steps that it reads have more than ${readCharsMax} characters together: keep large values as blobs and refer to them`;
    if (made === undefined) return undefined;
    const size = keptSize(made, () => this.#largestRead());
    if (size !== undefined && size.depth <= madeDepthMax) return undefined;
    if (size !== undefined) return `it would nest deeper than ${madeDepthMax} levels, which is the limit for a value that a template makes`;
    return `it would have more than ${grownText} besides the largest value that it reads: keep large values as blobs and refer to them`;
  }

  #largestRead(): ValueSize {
    // Each value has two characters at least with what separates it from the next: all that is known of a step by its text.
    let chars = this.#largest;
    let values = Math.floor(this.#largest / 2);
    for (const value of this.#values ?? []) {
      const size = sizeOf(value, countedMax);
      chars = Math.max(chars, size.chars);
      values = Math.max(values, size.values);
    }
    return { chars, values };
  }
}
