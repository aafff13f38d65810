// Which parts of other tasks a task has finished with, as ranges of their numbers. A reader that finishes them in order has one row. Ranges
// never touch: between two of them there is always a part that was left out.

import type { TaskRow } from "../board/task.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, Value } from "../rows.ts";
import { type StretchRow, stretchTable } from "../tables/part.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Writable } from "../writables.ts";
import type { TaskLife } from "./store.ts";

export interface Stretch {
  readonly first: number;
  readonly last: number;
}

/** Changes of the current batch for one reader and one source. */
interface Changes {
  readonly pair: Pair;
  /** Stored stretches that are removed, by their first numbers. */
  removed: ReadonlySet<number>;
  /** New stretches: first and last. */
  added: ReadonlyMap<number, number>;
}

const by = ["reader", "reader_life", "source", "source_life", "first"];
const nothing: ReadonlySet<number> = new Set();

export class PartReads implements Writable {
  readonly #rows: TableRows<StretchRow>;
  readonly #changes = new Map<string, Changes>();

  constructor(store: RowStore, commit: GroupCommit) {
    this.#rows = store.table(stretchTable);
    commit.join(this);
  }

  /** Records that the reader has finished with the parts of these numbers. */
  add(tx: Tx, reader: TaskRow, source: TaskRow, sequences: readonly number[]): void {
    const pair = pairOf(reader, source);
    const key = JSON.stringify(pair);
    const changes = this.#changes.get(key) ?? { pair, removed: nothing, added: new Map<number, number>() };
    const { removed, added } = changes;
    const next = { removed: new Set(removed), added: new Map(added) };
    for (const stretch of stretchesOf(sequences)) this.#merge(tx, pair, next, stretch);
    Object.assign(changes, next);
    this.#changes.set(key, changes);
    tx.undo(() => Object.assign(changes, { removed, added }));
  }

  /** The stretches after `after` that the reader has not finished with, in order; the last has no end. */
  *gaps(tx: ReadTx, reader: TaskRow, source: TaskRow, after: number): Generator<{ after: number; upTo: number | null }, void> {
    const equal = pairOf(reader, source);
    const [around] = this.#rows.scan(tx, { by, equal, below: [after + 2], backwards: true, limit: 1 });
    let from = Math.max(after, around?.last ?? 0);
    for (;;) {
      const [next] = this.#rows.scan(tx, { by, equal, above: [from], limit: 1 });
      if (next === undefined) return yield { after: from, upTo: null };
      yield { after: from, upTo: next.first - 1 };
      from = next.last;
    }
  }

  /** The stretches that the reader has finished with, in order, at most `limit`. */
  stretches(tx: ReadTx, reader: TaskLife, source: TaskLife, limit: number): Stretch[] {
    return [...this.#rows.scan(tx, { by, equal: pairOf(reader, source), limit })];
  }

  get dirty(): boolean {
    for (const { removed, added } of this.#changes.values()) if (removed.size > 0 || added.size > 0) return true;
    return false;
  }

  write(): void {
    for (const { pair, removed, added } of this.#changes.values()) {
      const [reader, readerLife, source, sourceLife] = pair;
      for (const first of removed) this.#rows.remove([...pair, first]);
      for (const [first, last] of added) this.#rows.insert([{ reader, readerLife, source, sourceLife, first, last }]);
    }
  }

  applied(): void {
    if (this.#changes.size > 0) this.#changes.clear();
  }

  /** Merges a stretch with all stretches that it touches. */
  #merge(tx: Tx, pair: Pair, changes: { removed: Set<number>; added: Map<number, number> }, { first, last }: Stretch): void {
    for (;;) {
      const near = this.#before(tx, pair, changes, last + 1);
      if (near === null || near.last < first - 1) break;
      if (near.first <= first && near.last >= last) return;
      if (!changes.added.delete(near.first)) changes.removed.add(near.first);
      first = Math.min(first, near.first);
      last = Math.max(last, near.last);
    }
    changes.added.set(first, last);
  }

  /** The stretch that starts at `first`, or the nearest one before it. */
  #before(tx: Tx, pair: Pair, { removed, added }: Pick<Changes, "removed" | "added">, first: number): Stretch | null {
    let found: Stretch | null = null;
    for (const [at, last] of added) if (at <= first && at > (found?.first ?? -1)) found = { first: at, last };
    const scan = { by, equal: pair, below: [first + 1], backwards: true, limit: removed.size + 1 };
    for (const stored of this.#rows.scan(tx, scan)) {
      if (removed.has(stored.first)) continue;
      return stored.first > (found?.first ?? -1) ? stored : found;
    }
    return found;
  }
}

/** Reader and source, each with its current life. */
type Pair = readonly [reader: string, readerLife: number, source: string, sourceLife: number] & readonly Value[];

function pairOf(reader: TaskLife, source: TaskLife): Pair {
  return [reader.id, reader.firstAttempt, source.id, source.firstAttempt];
}

function stretchesOf(sequences: readonly number[]): Stretch[] {
  const stretches: { first: number; last: number }[] = [];
  for (const sequence of [...sequences].sort((one, other) => one - other)) {
    const newest = stretches.at(-1);
    if (newest !== undefined && sequence <= newest.last + 1) newest.last = sequence;
    else stretches.push({ first: sequence, last: sequence });
  }
  return stretches;
}
