// Marks on runs. A mark exists while the rows of a run's tasks are rewritten in slices, and shows what the other rows mean until then. It
// exists only in memory. At the start of the server it is restored from the message that causes the next slice.
//
// Operations see the marks of their batch. All others see those of the last commit, because a commit may still be undone.

import type { Tx } from "../tx.ts";

interface Marked<Mark> {
  readonly mark: Mark;
  /** Resolves when all rows are written. */
  readonly written: Promise<void>;
  readonly resolve: () => void;
}

export class Marks<Mark> {
  /** The marks that operations see, with the changes of their batch. */
  readonly #runs = new Map<string, Marked<Mark>>();
  /** The marks that all others see. */
  readonly #committed = new Map<string, Mark>();

  add(tx: Tx, runId: string, mark: Mark): void {
    const before = this.#runs.get(runId);
    this.#set(runId, mark);
    tx.undo(() => (before === undefined ? this.#runs.delete(runId) : this.#runs.set(runId, before)));
    tx.after(() => this.#committed.set(runId, mark));
  }

  /** Restores a mark at the start of the server. */
  restore(runId: string, mark: Mark): void {
    this.#set(runId, mark);
    this.#committed.set(runId, mark);
  }

  #set(runId: string, mark: Mark): void {
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
    tx.after(() => {
      this.#committed.delete(runId);
      marked.resolve();
    });
  }

  /** Returns the mark that operations see. */
  get(runId: string): Mark | undefined {
    return this.#runs.get(runId)?.mark;
  }

  /** Returns the mark that a reader of a row sees. */
  seen(runId: string, isOperation: boolean): Mark | undefined {
    return isOperation ? this.get(runId) : this.#committed.get(runId);
  }

  /** Whether a reader sees no mark at all. */
  isEmpty(isOperation: boolean): boolean {
    return (isOperation ? this.#runs : this.#committed).size === 0;
  }

  /** Resolves when all rows of the run are written; undefined when the run has no mark. */
  written(runId: string): Promise<void> | undefined {
    return this.#runs.get(runId)?.written;
  }
}
