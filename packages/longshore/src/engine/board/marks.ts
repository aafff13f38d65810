// Marks on runs that change what the rows of their tasks mean, until these rows are written. A mark is memory: a message of the run, which leads to the
// next slice of rows, restores it at the start of the server.

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
    this.restore(runId, mark);
    tx.undo(() => this.#runs.delete(runId));
  }

  /** At the start of the server. */
  restore(runId: string, mark: Mark): void {
    let resolve = () => {};
    const written = new Promise<void>((done) => {
      resolve = done;
    });
    this.#runs.set(runId, { mark, written, resolve });
  }

  /** The rows of its tasks are written. */
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

  /** Undefined when the rows of its tasks mean what they say. */
  written(runId: string): Promise<void> | undefined {
    return this.#runs.get(runId)?.written;
  }
}
