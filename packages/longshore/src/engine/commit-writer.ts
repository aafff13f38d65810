// Writes the changes of a batch to the store. Remembers whether the store can be written and, if not, since when.

import { type LongshoreError, toError } from "../core/errors.ts";
import { unavailableError } from "./commit-errors.ts";
import { type RowStore, Unavailable } from "./rows.ts";
import type { Later, Tx } from "./tx.ts";
import type { Writables } from "./writables.ts";

/** After a failed commit, callers are refused for this long before the next try. */
const restMs = 250;

export class CommitWriter {
  readonly #store: RowStore;
  readonly #writables: Writables;
  readonly #tx: Tx;
  readonly #now: () => number;
  /** The commit that the store is writing. */
  #committing: Promise<unknown> | null = null;
  /** Why the last commit failed; null after one that succeeded. */
  #away: Unavailable | null = null;
  #restUntil = 0;
  #commits = 0;
  /** Set when commits are not durable, because the data file is not in its place any more. */
  #gone: LongshoreError | null = null;
  #refusal: LongshoreError | null = null;
  #listener: (why: Error | null) => void = () => {};
  #reportedAway = false;

  constructor(store: RowStore, writables: Writables, tx: Tx, now: () => number) {
    this.#store = store;
    this.#writables = writables;
    this.#tx = tx;
    this.#now = now;
  }

  /** The number of committed transactions. */
  get commits(): number {
    return this.#commits;
  }

  /** Resolves when no commit is in progress. */
  committed(): Promise<unknown> {
    return this.#committing ?? Promise.resolve();
  }

  /** Why commits are not durable; null when they are. */
  get gone(): LongshoreError | null {
    return this.#gone;
  }

  /** Why the store cannot be written; null when it can. */
  get unavailable(): LongshoreError | null {
    return this.#refusal ?? this.#gone ?? (this.#away === null ? null : unavailableError(this.#away));
  }

  /** Checks that the data file is in its place, for a store that is not being written. */
  lookForFile(): void {
    if (this.#gone !== null) return;
    this.#gone = this.#store.isGone();
    this.#notify(this.#gone);
  }

  /** Stops all writes: each commit that would change something fails with `error`. */
  refuse(error: LongshoreError): void {
    this.#refusal = error;
    this.#notify(error);
  }

  /** Sets the listener that is called with the reason when writing becomes impossible, and with null when it works again. */
  hear(listener: (why: Error | null) => void): void {
    this.#listener = listener;
  }

  /**
   * Writes all pending changes. Returns why they could not be written; null on success. When another server may own the data, a batch
   * without changes makes an empty commit first: only then may it be answered from memory.
   */
  write(): Later<Error | null> {
    if (!this.#writables.dirty && this.#store.isOwned()) return null;
    const failure = this.#writeNow();
    return failure instanceof Promise ? failure.then((reason) => this.#notify(reason)) : this.#notify(failure);
  }

  /**
   * Returns the error for the callers of a commit or a load that failed. When the store is unavailable, no commit is tried for a moment.
   */
  readonly failed = (thrown: unknown): Error => {
    this.#committing = null;
    if (!(thrown instanceof Unavailable)) return toError(thrown);
    this.#away = thrown;
    this.#restUntil = this.#now() + restMs;
    return unavailableError(thrown);
  };

  #writeNow(): Later<Error | null> {
    // The pause after a failed commit applies only here: operations that change nothing still succeed.
    if (this.#refusal !== null) return this.#refusal;
    if (this.#gone !== null) this.#gone = this.#store.isGone();
    if (this.#gone !== null) return this.#gone;
    if (this.#away !== null && this.#restUntil > this.#now()) return unavailableError(this.#away);
    try {
      const written = this.#store.commit(this.#writeParts);
      if (!(written instanceof Promise)) return this.#written();
      const failure = written.then(this.#written, this.failed);
      this.#committing = failure;
      return failure;
    } catch (thrown) {
      return this.failed(thrown);
    }
  }

  readonly #writeParts = (): void => {
    this.#writables.write(this.#tx);
  };

  readonly #written = (): null => {
    this.#committing = null;
    this.#commits++;
    this.#away = null;
    this.#gone = this.#store.isGone();
    return null;
  };

  /** Notifies the listener when availability has changed. Returns the failure. */
  #notify(failure: Error | null): Error | null {
    const away = this.unavailable;
    if ((away !== null) !== this.#reportedAway) {
      this.#reportedAway = away !== null;
      this.#listener(away === null ? null : (failure ?? away));
    }
    return failure;
  }
}
