// "Did you mean ...?" for a name that does not exist.

/** The known names that differ from `given` by few letters, nearest first; empty when none is near. */
export function nearNames(given: string, known: readonly string[], count = 3): string[] {
  const typed = given.toLowerCase();
  // A third of the letters may be wrong; in a short name, one letter.
  const differenceMax = Math.max(1, Math.floor(given.length / 3));
  return known
    .map((name) => ({ name, difference: differenceOf(typed, name.toLowerCase()) }))
    .filter(({ name, difference }) => difference <= differenceMax || isPartOf(typed, name.toLowerCase()))
    .sort((one, other) => one.difference - other.difference)
    .slice(0, count)
    .map(({ name }) => name);
}

/** A question with the names that the person may have meant; undefined when none is near. */
export function didYouMean(given: string, known: readonly string[]): string | undefined {
  const near = nearNames(given, known).map((name) => JSON.stringify(name));
  return near.length === 0 ? undefined : `Did you mean ${near.join(" or ")}?`;
}

/** A person may remember one word of a longer name. */
const partCharsMin = 3;

function isPartOf(piece: string, whole: string): boolean {
  return piece.length >= partCharsMin && whole.includes(piece);
}

/** How many letters must be inserted, removed, replaced or swapped with their neighbour (optimal string alignment). */
function differenceOf(one: string, other: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let column = 1; column <= other.length; column++) {
      const isSame = one[row - 1] === other[column - 1];
      const isSwap = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      current[column] = Math.min(
        (previous[column] as number) + 1,
        (current[column - 1] as number) + 1,
        (previous[column - 1] as number) + (isSame ? 0 : 1),
        isSwap ? (before[column - 2] as number) + 1 : Infinity,
      );
    }
    before = previous;
    previous = current;
  }
  return previous[other.length] as number;
}
