// Limits what one template reads from its run and what it produces. Every template of every dialect is evaluated under this limit, because
// a decision cannot stop half-way. All that it reads and produces is in memory at once, and all other work waits meanwhile.

import type { Json } from "../../core/json/json.ts";
import { payloadRequestBytes } from "../../core/payload-size.ts";
import { sizeOf, type ValueSize } from "../../core/text-size.ts";
import { grownText, keptSize } from "./growth.ts";

/**
 * Maximum characters of the inputs and outputs of steps that one template reads, not counting the largest: twice what it may produce. Only
 * this limit stops a template that reads a small piece of each of many large outputs.
 */
export const readCharsMax = 2 * payloadRequestBytes;

/**
 * Maximum nesting of lists and objects that a template produces. It is five times the limit of a request, so that a template can put a
 * value inside others. It is half of what JSON readers of other languages accept. JSON.stringify overflows the stack at a nesting of some
 * thousands.
 */
const madeDepthMax = 500;

/** No stored value is larger. */
const countedMax: ValueSize = { chars: 16 * payloadRequestBytes, values: payloadRequestBytes };

export class TemplateReads {
  /** Created on demand: most templates read one value, and none of a step. */
  #values: Json[] | undefined = undefined;
  #steps: Set<number> | undefined = undefined;
  #chars = 0;
  #largest = 0;

  /** Records and returns a value that the template reads completely. */
  given<Value extends Json>(value: Value): Value {
    if (this.#values === undefined) this.#values = [value];
    else this.#values.push(value);
    return value;
  }

  /** Records that the template reads a step whose texts have this many characters. May be repeated. */
  step(node: number, chars: number): void {
    this.#steps ??= new Set();
    if (this.#steps.has(node)) return;
    this.#steps.add(node);
    this.#chars += chars;
    this.#largest = Math.max(this.#largest, chars);
  }

  /** Why the template must not be evaluated, or its result not stored; undefined when it is accepted. */
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
    // A value takes at least two characters, including its separator: an upper bound for a step of which only the text length is known.
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
