// One table's rows as operations see them: the changes of this batch come first, then rows in memory, then rows on disk.

import type { GroupCommit } from "./commit.ts";
import type { Scan, TableRows, Value } from "./rows.ts";
import type { ReadTx, Tx } from "./tx.ts";
import type { Writable } from "./writables.ts";

/** How a table's rows are read, written and cached. */
export interface RowsOptions<R> {
  /** May throw `Missing`. */
  load(tx: ReadTx, key: string): R | null;
  /** Writes one row. `before` is the row that the last commit left in memory, if any. */
  save(row: R, isNew: IsNew, before: R | undefined): void;
  remove?(key: string): void;
  /** Whether a row stays in memory after its commit. Other rows are read again when they are needed. */
  keep(row: R): "always" | "while-room" | "no";
  /** The number of characters in inputs, outputs and other texts of unlimited length; for tables with such texts. */
  chars?(row: R): number;
  /** Maximum number of rows kept with `while-room`. Their texts have a limit of their own. */
  keptMax: number;
  /** Returns the row without its texts. For rows that must stay in memory although there is no room for the texts. */
  texts?: Texts<R>;
  /** `before`: the row that the last commit left; undefined for a new row. Not always known without `remembersBefore`. */
  committed?(row: R, before: R | undefined): void;
  /** Remembers rows that operations read until the end of their batch: `committed` needs the row before the change. */
  remembersBefore?: boolean;
  /** Called for a row that a commit has removed. */
  removed?(key: string): void;
  /** Replaces a row for every reader, when something that is stored elsewhere has changed the meaning of the row. */
  seen?(row: R, isOperation: boolean): R;
}

/** A row in memory may lack its texts: they are on disk as the last commit left them. */
interface Texts<R> {
  areWith(row: R): boolean;
  without(row: R): R;
  /** Returns the row with the texts of another one, if that one has them. */
  from(stored: R, row: R): R;
}

/**
 * Maximum number of characters of all texts that a table keeps in memory: 64 MB. A row may have many megabytes, and thousands of rows are
 * open.
 */
const keptCharsMax = 33_554_432;
/** A row with fewer characters stays in memory even above `keptCharsMax`, so that large rows do not slow down small ones. */
const fewChars = 4_096;

/**
 * Steps of the batch's budget that one row costs in addition to its texts: writing it takes about 15 us. So a transaction takes no more
 * operations after 1,562 rows.
 */
export const rowSteps = 32;

/** True when the row may not be on disk yet. `first` when it must not be on disk yet: otherwise the commit fails. */
export type IsNew = boolean | "first";

interface Pending<R> {
  row: R | null;
  isNew: IsNew;
}

const outside: Pick<ReadTx, "isOperation"> = { isOperation: false };

export class Rows<R> implements Writable {
  readonly #commit: GroupCommit;
  readonly #options: RowsOptions<R>;
  readonly #kept = new Map<string, R>();
  readonly #pending = new Map<string, Pending<R>>();
  readonly #refreshed = new Map<string, R>();
  /** Rows that operations of this batch have read from the store; only with `remembersBefore`. */
  readonly #read = new Map<string, R>();
  #keptChars = 0;
  readonly #touch: () => void;

  constructor(commit: GroupCommit, options: RowsOptions<R>) {
    this.#commit = commit;
    this.#options = options;
    this.#touch = commit.joinWhenTouched(this);
  }

  get(tx: ReadTx, key: string): R | null {
    const row = this.own(tx, key);
    return row === null ? null : this.#seen(tx, row);
  }

  /** Returns the row itself, without `seen`, for code that updates it. */
  own(tx: ReadTx, key: string): R | null {
    const pending = tx.isOperation ? this.#pending.get(key) : undefined;
    if (pending !== undefined) return pending.row;
    const kept = this.#kept.get(key);
    if (kept !== undefined && this.#isWhole(kept)) return kept;
    const stored = this.#options.load(tx, key);
    if (stored !== null && kept === undefined && tx.isOperation && this.#options.remembersBefore) {
      this.#touch();
      this.#read.set(key, stored);
    }
    return kept === undefined || stored === null ? stored : this.#over(stored, kept);
  }

  /** For a row that was read in another way: returns its newest version in memory, or null when it was removed. */
  newest(tx: ReadTx, key: string, stored: R): R | null {
    const pending = tx.isOperation ? this.#pending.get(key) : undefined;
    if (pending !== undefined) return pending.row === null ? null : this.#seen(tx, pending.row);
    const kept = this.#kept.get(key);
    return this.#seen(tx, kept === undefined ? stored : this.#over(stored, kept));
  }

  /** Returns whether the row is in memory. When it is not, it may be on disk. */
  has(tx: Tx, key: string): boolean {
    const pending = tx.isOperation ? this.#pending.get(key) : undefined;
    return pending === undefined ? this.#kept.has(key) : pending.row !== null;
  }

  /** Whether this batch removes the row. */
  isRemoved(tx: ReadTx, key: string): boolean {
    return tx.isOperation && this.#pending.get(key)?.row === null;
  }

  put(tx: Tx, key: string, row: R, isNew: IsNew = false): void {
    const pending = this.#pending.get(key);
    if (this.#options.chars !== undefined) tx.weigh(this.#options.chars(row));
    // A row that the batch removes may be on disk.
    this.#set(tx, key, { row, isNew: pending === undefined ? isNew : pending.row === null || pending.isNew || isNew === true });
  }

  remove(tx: Tx, key: string): void {
    this.#set(tx, key, { row: null, isNew: false });
  }

  /**
   * Changes a row in memory, outside any batch. Only for changes that a restart restores: they are written with the next commit. Returns
   * false while a batch is being written, because it may have changed the row: then an operation is needed.
   */
  refresh(key: string, row: R): boolean {
    if (!this.#commit.isMemoryCurrent) return false;
    this.restore(key, row);
    return true;
  }

  /** Changes a row in memory at the start, before any batch. */
  restore(key: string, row: R): void {
    this.#keep(key, row, "always");
    this.#refreshed.set(key, row);
    this.#touch();
  }

  /** The row that the last commit left in memory; it may lack its texts. Not for operations, which see the changes of their batch. */
  kept(key: string): R | undefined {
    const row = this.#kept.get(key);
    return row === undefined ? undefined : this.#seen(outside, row);
  }

  /** All rows in memory, as `kept` returns them. */
  *allKept(): IterableIterator<R> {
    for (const row of this.#kept.values()) yield this.#seen(outside, row);
  }

  /** Characters of the texts in memory. */
  get keptChars(): number {
    return this.#keptChars;
  }

  /** Rows of this batch that have not been written yet. */
  pending(tx: ReadTx): R[] {
    const rows: R[] = [];
    if (tx.isOperation) for (const { row } of this.#pending.values()) if (row !== null) rows.push(this.#seen(tx, row));
    return rows;
  }

  get dirty(): boolean {
    return this.#pending.size > 0;
  }

  write(): void {
    if (this.#refreshed.size > 0) this.#writeRefreshed();
    for (const [key, { row, isNew }] of this.#pending) {
      if (row === null) this.#options.remove?.(key);
      else this.#options.save(row, isNew, this.#kept.get(key));
    }
  }

  #writeRefreshed(): void {
    for (const [key, row] of this.#refreshed) if (!this.#pending.has(key)) this.#options.save(row, false, row);
    // If this transaction fails, nothing is lost: a restart restores the same changes.
    this.#refreshed.clear();
  }

  applied(): void {
    if (this.#refreshed.size > 0) this.#touch();
    if (this.#pending.size === 0) return this.#read.clear();
    const { committed, removed } = this.#options;
    for (const [key, { row }] of this.#pending) {
      if (row === null) {
        this.#drop(key);
        removed?.(key);
      } else {
        const before = this.#kept.get(key) ?? this.#read.get(key);
        this.#keep(key, row);
        committed?.(row, before);
      }
    }
    this.#pending.clear();
    this.#read.clear();
  }

  #seen({ isOperation }: Pick<ReadTx, "isOperation">, row: R): R {
    return this.#options.seen === undefined ? row : this.#options.seen(row, isOperation);
  }

  #keep(key: string, row: R, how = this.#options.keep(row)): void {
    const { keptMax, texts } = this.#options;
    const isRoom = how === "always" || (how === "while-room" && (this.#kept.size < keptMax || this.#kept.has(key)));
    this.#drop(key);
    if (!isRoom) return;
    const chars = this.#charsOf(row);
    const isFit = chars <= fewChars || this.#keptChars + chars <= keptCharsMax;
    if (!isFit && how === "while-room") return;
    const kept = isFit || texts === undefined ? row : texts.without(row);
    this.#kept.set(key, kept);
    this.#keptChars += this.#charsOf(kept);
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#keptChars -= this.#charsOf(kept);
    this.#kept.delete(key);
  }

  #charsOf(row: R): number {
    return this.#isWhole(row) ? (this.#options.chars?.(row) ?? 0) : 0;
  }

  #isWhole(row: R): boolean {
    return this.#options.texts?.areWith(row) ?? true;
  }

  /** Returns the row in memory, with the texts of `stored` when it lacks them. */
  #over(stored: R, kept: R): R {
    const { texts } = this.#options;
    return texts === undefined || texts.areWith(kept) ? kept : texts.from(stored, kept);
  }

  #set(tx: Tx, key: string, pending: Pending<R>): void {
    this.#touch();
    const before = this.#pending.get(key);
    if (before === undefined) tx.spend(rowSteps);
    this.#pending.set(key, pending);
    tx.undo(() => {
      if (before === undefined) this.#pending.delete(key);
      else this.#pending.set(key, before);
    });
  }
}

/** Rows per page while the engine starts: each may have megabytes. */
const pageRowsDefault = 500;

export interface EachRow<R> {
  /** The position after which it begins. */
  from?: Value[];
  /** The position of a row in the order of the scan. */
  at(row: R): Value[];
  take(row: R): void;
  /** Rows per page, for rows that are known to be small. */
  pageRows?: number;
  /** Called after each page. */
  paged?(): Promise<void>;
}

/** Passes every row of a scan to `take`, page by page. */
export async function eachRow<R>(commit: GroupCommit, rows: TableRows<R>, scan: Scan, each: EachRow<R>): Promise<void> {
  const { pageRows = pageRowsDefault } = each;
  for (let above: Value[] | undefined = each.from; ; ) {
    const page = await commit.read((tx) => [...rows.scan(tx, { ...scan, above, limit: pageRows })]);
    for (const row of page) each.take(row);
    await each.paged?.();
    if (page.length < pageRows) return;
    above = each.at(page.at(-1) as R);
  }
}

/** Writes that operations collect, and that the commit makes: mostly rows that are only added. */
export class Additions<R> implements Writable {
  readonly #save: (row: R, tx: Tx) => void;
  readonly #chars: ((row: R) => number) | undefined;
  readonly #touch: () => void;
  #pending: R[] = [];

  /** `chars` as in RowsOptions. */
  constructor(commit: GroupCommit, save: (row: R, tx: Tx) => void, chars?: (row: R) => number) {
    this.#save = save;
    this.#chars = chars;
    this.#touch = commit.joinWhenTouched(this);
  }

  add(tx: Tx, row: R): void {
    if (this.#chars !== undefined) tx.weigh(this.#chars(row));
    tx.spend(rowSteps);
    this.#touch();
    this.#pending.push(row);
    tx.undo(() => this.#pending.pop());
  }

  get dirty(): boolean {
    return this.#pending.length > 0;
  }

  pending(_tx: Tx): readonly R[] {
    return this.#pending;
  }

  write(tx: Tx): void {
    for (const row of this.#pending) this.#save(row, tx);
  }

  applied(): void {
    if (this.#pending.length > 0) this.#pending = [];
  }
}
