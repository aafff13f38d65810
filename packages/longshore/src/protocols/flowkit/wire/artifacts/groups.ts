// Cutting a list where it is too large for one call.

/** Neighbours together, up to so many bytes; one that is larger by itself is alone, for its receiver to refuse. */
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
