// Values that no row has: a text with a NUL character, and a number that is not a whole number below 2^53. A request may contain one, for
// example as the id of a task. PostgreSQL refuses a statement with it, and all other statements of the same message. SQLite's driver cuts
// the text at the NUL, and would find the row of another key. So no statement gets such a value: a key with it finds nothing, and a bound
// is replaced by the next value that a row may have.

import { isKey, type Scan, type TableRows, type Value } from "../engine/rows.ts";

/** The rows of a table, for callers that may name values which no row has. */
export function storable<R>(rows: TableRows<R>): TableRows<R> {
  return {
    insert: rows.insert,
    write: rows.write,
    get: (tx, ...key) => (areStorable(key) ? rows.get(tx, ...key) : null),
    scan(tx, wanted) {
      const scan = storableScan(wanted);
      return scan === null ? [] : rows.scan(tx, scan);
    },
    total(tx, wanted, name) {
      const scan = storableScan(wanted);
      return scan === null ? { rows: 0, sum: 0 } : rows.total(tx, scan, name);
    },
    remove(wanted) {
      const found = isKey(wanted) ? (areStorable(wanted) ? wanted : null) : storableScan(wanted);
      if (found !== null) rows.remove(found);
    },
  };
}

/** Returns whether a row can have this text. */
export function storableText(text: string): string {
  return text.replaceAll(nul, "\ufffd");
}

const nul = "\u0000";
const none: readonly Value[] = [];

/** The same scan, with bounds that a row may have. Null when no row can match. */
function storableScan(scan: Scan): Scan | null {
  const { equal = none, above = none, below = none, containing } = scan;
  const texts = containing?.texts ?? none;
  if (!areStorable(equal) || !areStorable(texts)) return null;
  if (areStorable(above) && areStorable(below)) return scan;
  if ([...above, ...below].some(Number.isNaN)) return null;
  return {
    ...scan,
    ...(scan.above === undefined ? {} : { above: boundOf(above, justBelow) }),
    ...(scan.below === undefined ? {} : { below: boundOf(below, justAbove) }),
  };
}

/** A loop by index, because this code runs for every read. */
function areStorable(values: readonly Value[]): boolean {
  for (let at = 0; at < values.length; at++) if (!isStorable(values[at] as Value)) return false;
  return true;
}

function isStorable(value: Value): boolean {
  if (typeof value === "string") return !value.includes(nul);
  return typeof value !== "number" || Number.isSafeInteger(value);
}

/** No row has the first value that cannot be stored, so the values after it have no effect. */
function boundOf(values: readonly Value[], near: (value: Value) => Value): readonly Value[] {
  const at = values.findIndex((value) => !isStorable(value));
  return at < 0 ? values : [...values.slice(0, at), near(values[at] as Value)];
}

/** Rows above this value are above the returned one, and the other way round. */
function justBelow(value: Value): Value {
  return typeof value === "number" ? within(Math.floor(value)) : upToNul(value as string);
}

/** Rows below this value are below the returned one, and the other way round. */
function justAbove(value: Value): Value {
  return typeof value === "number" ? within(Math.ceil(value)) : `${upToNul(value as string)}\u0001`;
}

function upToNul(text: string): string {
  return text.slice(0, text.indexOf(nul));
}

/** Limits a number to the range just around the numbers that a row may have. */
function within(value: number): number {
  return Math.max(-(2 ** 53), Math.min(2 ** 53, value));
}
