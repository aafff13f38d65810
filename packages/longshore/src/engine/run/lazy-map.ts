// A map that is created with its first entry. A decision has ten of them and most decisions fill none, but an empty `Map` takes 200 bytes.

export class LazyMap<K, V> {
  #map: Map<K, V> | null = null;

  get size(): number {
    return this.#map === null ? 0 : this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map === null ? undefined : this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map?.has(key) ?? false;
  }

  set(key: K, value: V): void {
    this.#map ??= new Map();
    this.#map.set(key, value);
  }

  delete(key: K): void {
    this.#map?.delete(key);
  }

  entries(): Iterable<[K, V]> {
    return this.#map ?? [];
  }
}
