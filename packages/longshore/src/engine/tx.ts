// What an operation may do. The group commit makes one of these for each operation and passes it in; whatever reads or changes rows takes
// it as its first parameter. So "inside an operation" is a type, and code outside of operations cannot change anything.

/** Reads rows: what is committed, or, inside an operation, what its batch has made of it. */
export interface ReadTx {
  readonly isOperation: boolean;
  /** What the store has loaded for it, by keys of the store. A store that reads synchronously puts nothing in here. */
  readonly loaded: Map<string, unknown>;
}

export interface Tx extends ReadTx {
  readonly isOperation: true;
  /** How to take a change of memory back. Called in reverse order when the operation or its commit fails. */
  undo(takeBack: () => void): void;
  /** Called once the change is durable. */
  after(then: () => void): void;
  /** Reports that the operation was expensive, in steps of the batch's budget: what is queued behind it waits for the next batch. */
  spend(steps: number): void;
  /** Reports that the operation writes so many characters. Large ones share no transaction, so that none writes many megabytes at once. */
  weigh(chars: number): void;
}

/** What a store may have at once or later. */
export type Later<T> = T | Promise<T>;

/** How all others read: they see what is committed. `GroupCommit.read` performs `work`, again where rows were missing. */
export type ReadRows = <T>(work: (tx: ReadTx) => Later<T>) => Promise<T>;
