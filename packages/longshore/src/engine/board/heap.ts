// A binary heap: the smallest entry first. Entries are never removed from the middle. The owner checks an entry when it reaches the top,
// and drops it when it is outdated.

export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(item, items[parent] as T)) break;
      items[at] = items[parent] as T;
      at = parent;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (items.length > 0 && last !== undefined) this.#sink(last);
    return top;
  }

  /** Returns the first `count` entries in order, without removing them. */
  next(count: number): T[] {
    const taken: T[] = [];
    while (taken.length < count && this.#items.length > 0) taken.push(this.pop() as T);
    for (const item of taken) this.push(item);
    return taken;
  }

  /** In no particular order. */
  values(): IterableIterator<T> {
    return this.#items.values();
  }

  #sink(item: T): void {
    const items = this.#items;
    const length = items.length;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#before(items[child + 1] as T, items[child] as T)) child++;
      if (!this.#before(items[child] as T, item)) break;
      items[at] = items[child] as T;
      at = child;
    }
    items[at] = item;
  }
}
