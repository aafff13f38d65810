// A cache of values that are computed from definitions. A definition may have megabytes, and a value several times as much, so the limit of a cache
// is in characters of the sources.

import { WeightedCache } from "../../core/weighted-cache.ts";
import type { Definition } from "./dialect.ts";

/** Maximum characters of all sources in one cache. */
const sourceCharsMax = 33_554_432;
/** Added for each value, so that a cache has at most 8,192 of them. */
const charsMin = 4_096;

export class DefinitionCache<Value> {
  readonly #values = new WeightedCache<Value>(sourceCharsMax);

  get(key: string): Value | undefined {
    return this.#values.get(key);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  /** `chars`: the size of the value. Default: the characters of the source. */
  set(key: string, value: Value, { source }: Pick<Definition, "source">, chars: number = source.length): Value {
    return this.#values.set(key, value, charsMin + chars);
  }

  /** The characters that all its values count. */
  get weight(): number {
    return this.#values.weight;
  }
}
