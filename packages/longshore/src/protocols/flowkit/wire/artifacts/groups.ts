// Splits a list that is too large for one call.

/** Groups neighbours up to this many bytes. A larger item is alone in its group; its receiver refuses it. */
export function* grouped<T>(items: readonly T[], bytesOf: (item: T) => number, bytesMax: number): Generator<T[]> {
  let group: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = bytesOf(item);
    if (group.length > 0 && bytes + size > bytesMax) {
      yield group;
      group = [];
      bytes = 0;
    }
    group.push(item);
    bytes += size;
  }
  if (group.length > 0) yield group;
}
