// A cache with a maximum total weight. Above it, the values that were unused for the longest time are dropped, so each value must be one
// that can be made again. For values of any size, such as definitions.

export class WeightedCache<Value> {
  readonly #values = new Map<string, { value: Value; weight: number }>();
  readonly #weightMax: number;
  #weight = 0;

  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  get weight(): number {
    return this.#weight;
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  get(key: string): Value | undefined {
    const entry = this.#values.get(key);
    if (entry === undefined) return undefined;
    // The order matters only when values may have to be dropped. Until then, a use costs one lookup.
    if (this.#weight > this.#weightMax / 2) {
      this.#values.delete(key);
      this.#values.set(key, entry);
    }
    return entry.value;
  }

  /** The value that was just set is kept, even if it is too heavy. */
  set(key: string, value: Value, weight = 1): Value {
    this.#drop(key);
    this.#values.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#values.keys()) {
      if (this.#weight <= this.#weightMax || oldest === key) break;
      this.#drop(oldest);
    }
    return value;
  }

  #drop(key: string): void {
    this.#weight -= this.#values.get(key)?.weight ?? 0;
    this.#values.delete(key);
  }
}
