// What an operation may do. The group commit creates one of these for each operation. All code that reads or changes rows takes it as its
// first parameter. So "inside an operation" is a type, and code outside of operations cannot change anything.

import type { Orderer } from "../core/orderer.ts";

/** Reads rows: the committed state, or, inside an operation, the state with the changes of its batch. */
export interface ReadTx {
  readonly isOperation: boolean;
  /** Rows that the store has loaded for this transaction, by keys of the store. A store that reads synchronously leaves it empty. */
  readonly loaded: Map<string, unknown>;
}

export interface Tx extends ReadTx {
  readonly isOperation: true;
  /** Who ordered the operation; undefined when no caller did, such as for a tick of a schedule. */
  readonly orderer: Orderer | undefined;
  /** Registers how to undo a change in memory. Called in reverse order when the operation or its commit fails. */
  undo(takeBack: () => void): void;
  /** Called once the change is durable. */
  after(then: () => void): void;
  /** Reports the cost of the operation, in steps. When the steps of the batch are used up, queued operations wait for the next batch. */
  spend(steps: number): void;
  /** Whether the budget of the batch is used up: an operation leaves to later ones what they can do. */
  readonly isSpent: boolean;
  /**
   * Reports the number of characters that the operation writes. Large operations do not share a transaction, so that no transaction writes
   * many megabytes.
   */
  weigh(chars: number): void;
}

/** A value that a store returns at once or later. */
export type Later<T> = T | Promise<T>;

/**
 * How code outside of operations reads committed rows. `GroupCommit.read` performs `work`, and performs it again when rows were missing.
 */
export type ReadRows = <T>(work: (tx: ReadTx) => Later<T>) => Promise<T>;
