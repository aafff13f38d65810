// One table's rows as operations see them: what this batch has changed, over what is kept in memory, over what is on disk.

import type { GroupCommit, Writable } from "./commit.ts";

/** How a table's rows are read, written and kept. */
export interface RowsOptions<R> {
  load(key: string): R | null;
  /** Writes one row; `isNew` when there may be none on disk yet. `before` is what the last commit left in memory, if it left it there. */
  save(row: R, isNew: boolean, before: R | undefined): void;
  remove?(key: string): void;
  /** Whether a row stays in memory after its commit. What is not kept is read again when it is asked for. */
  keep(row: R): "always" | "while-room" | "no";
  /** How many characters of inputs, outputs and other texts of any length the row has; for tables that have such. */
  chars?(row: R): number;
  /** How many rows are room enough. */
  keptMax: number;
  committed?(row: R): void;
}

interface Pending<R> {
  row: R | null;
  isNew: boolean;
}

export class Rows<R> implements Writable {
  readonly #commit: GroupCommit;
  readonly #options: RowsOptions<R>;
  readonly #kept = new Map<string, R>();
  readonly #pending = new Map<string, Pending<R>>();
  readonly #refreshed = new Map<string, R>();

  constructor(commit: GroupCommit, options: RowsOptions<R>) {
    this.#commit = commit;
    this.#options = options;
    commit.join(this);
  }

  get(key: string): R | null {
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending.row;
    return this.#kept.get(key) ?? this.#options.load(key);
  }

  /** Whether this batch removes it. */
  isRemoved(key: string): boolean {
    return this.#pending.get(key)?.row === null;
  }

  put(key: string, row: R, isNew = false): void {
    const pending = this.#pending.get(key);
    if (this.#options.chars !== undefined) this.#commit.weigh(this.#options.chars(row));
    this.#set(key, { row, isNew: isNew || pending?.isNew === true || pending?.row === null });
  }

  remove(key: string): void {
    this.#set(key, { row: null, isNew: false });
  }

  /**
   * Changes what is kept in memory, outside any batch. Only for what a restart restores by itself: it is written along with the next
   * commit, whoever causes that.
   */
  refresh(key: string, row: R): void {
    this.#kept.set(key, row);
    this.#refreshed.set(key, row);
  }

  kept(key: string): R | undefined {
    return this.#kept.get(key);
  }

  /** Rows of this batch that have not been written yet. */
  pending(): R[] {
    const rows: R[] = [];
    for (const { row } of this.#pending.values()) if (row !== null) rows.push(row);
    return rows;
  }

  get dirty(): boolean {
    return this.#pending.size > 0;
  }

  write(): void {
    for (const [key, row] of this.#refreshed) if (!this.#pending.has(key)) this.#options.save(row, false, row);
    // Should this transaction fail, nothing is lost: a restart would restore the same.
    this.#refreshed.clear();
    for (const [key, { row, isNew }] of this.#pending) {
      if (row === null) this.#options.remove?.(key);
      else this.#options.save(row, isNew, this.#kept.get(key));
    }
  }

  applied(): void {
    const { committed } = this.#options;
    for (const [key, { row }] of this.#pending) {
      if (row !== null && this.#keeps(key, row)) this.#kept.set(key, row);
      else this.#kept.delete(key);
      if (row !== null) committed?.(row);
    }
    this.#pending.clear();
  }

  #keeps(key: string, row: R): boolean {
    const keep = this.#options.keep(row);
    return keep === "always" || (keep === "while-room" && (this.#kept.size < this.#options.keptMax || this.#kept.has(key)));
  }

  #set(key: string, pending: Pending<R>): void {
    const before = this.#pending.get(key);
    this.#pending.set(key, pending);
    this.#commit.undo(() => {
      if (before === undefined) this.#pending.delete(key);
      else this.#pending.set(key, before);
    });
  }
}

/** Rows that are only ever added. */
export class Additions<R> implements Writable {
  readonly #commit: GroupCommit;
  readonly #save: (row: R) => void;
  readonly #chars: ((row: R) => number) | undefined;
  #pending: R[] = [];

  /** `chars` as in RowsOptions. */
  constructor(commit: GroupCommit, save: (row: R) => void, chars?: (row: R) => number) {
    this.#commit = commit;
    this.#save = save;
    this.#chars = chars;
    commit.join(this);
  }

  add(row: R): void {
    if (this.#chars !== undefined) this.#commit.weigh(this.#chars(row));
    this.#pending.push(row);
    this.#commit.undo(() => this.#pending.pop());
  }

  get dirty(): boolean {
    return this.#pending.length > 0;
  }

  pending(): readonly R[] {
    return this.#pending;
  }

  write(): void {
    for (const row of this.#pending) this.#save(row);
  }

  applied(): void {
    if (this.#pending.length > 0) this.#pending = [];
  }
}
