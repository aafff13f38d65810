// Marks on runs that change the meaning of their tasks' rows, until these rows are rewritten. A mark exists only in memory: at the start of
// the server it is restored from the run's message that leads to the next slice of rows.

import type { Tx } from "../tx.ts";

interface Marked<Mark> {
  readonly mark: Mark;
  /** Resolves when all rows are written. */
  readonly written: Promise<void>;
  readonly resolve: () => void;
}

export class Marks<Mark> {
  readonly #runs = new Map<string, Marked<Mark>>();

  get size(): number {
    return this.#runs.size;
  }

  add(tx: Tx, runId: string, mark: Mark): void {
    const before = this.#runs.get(runId);
    this.restore(runId, mark);
    tx.undo(() => (before === undefined ? this.#runs.delete(runId) : this.#runs.set(runId, before)));
  }

  /** Restores a mark at the start of the server. */
  restore(runId: string, mark: Mark): void {
    const before = this.#runs.get(runId);
    if (before !== undefined) {
      this.#runs.set(runId, { ...before, mark });
      return;
    }
    let resolve = () => {};
    const written = new Promise<void>((done) => {
      resolve = done;
    });
    this.#runs.set(runId, { mark, written, resolve });
  }

  /** Removes the mark after all rows of the run's tasks are written. */
  remove(tx: Tx, runId: string): void {
    const marked = this.#runs.get(runId);
    if (marked === undefined) return;
    this.#runs.delete(runId);
    tx.undo(() => this.#runs.set(runId, marked));
    tx.after(marked.resolve);
  }

  get(runId: string): Mark | undefined {
    return this.#runs.get(runId)?.mark;
  }

  /** Resolves when all rows of the run are written; undefined when the run has no mark. */
  written(runId: string): Promise<void> | undefined {
    return this.#runs.get(runId)?.written;
  }
}
