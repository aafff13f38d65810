// Values up to a total weight, of which those that were not used for longest are dropped: everything in it can be made again. For what is as large
// as callers make it, such as definitions: a number of them would be no bound.

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
    // The order matters once something may have to go; until then a use costs one lookup.
    if (this.#weight > this.#weightMax / 2) {
      this.#values.delete(key);
      this.#values.set(key, entry);
    }
    return entry.value;
  }

  /** The value just set is kept whatever it weighs. */
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
