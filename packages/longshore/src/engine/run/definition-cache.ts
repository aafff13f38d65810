// What was made of definitions, or read of them, by any key. An operator stores definitions of megabytes, and what is made of one takes several times
// as much: so each cache has a bound in characters of their sources.

import { WeightedCache } from "../../core/weighted-cache.ts";
import type { Definition } from "./dialect.ts";

/** Of all sources in one cache. */
const sourceCharsMax = 33_554_432;
/** What the smallest counts: 8,192 of them fill a cache. */
const charsMin = 4_096;

export class DefinitionCache<Value> {
  readonly #values = new WeightedCache<Value>(sourceCharsMax);

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** `chars`: what it counts. Default: the characters of the source. */
  set(key: string, value: Value, { source }: Pick<Definition, "source">, chars: number = source.length): Value {
    return this.#values.set(key, value, charsMin + chars);
  }

  /** Characters of the sources that it counts. */
  get weight(): number {
    return this.#values.weight;
  }
}
