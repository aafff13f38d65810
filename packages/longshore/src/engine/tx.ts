// What an operation may do. The group commit makes one of these for each operation and passes it in; whatever reads or changes rows takes
// it as its first parameter. So "inside an operation" is a type, and code outside of operations cannot change anything.

/** Reads rows: what is committed, or, inside an operation, what its batch has made of it. */
export interface ReadTx {
  readonly isOperation: boolean;
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

/** For readers outside of operations where the store reads synchronously: they see what is committed. */
export const committed: ReadTx = { isOperation: false };
