// The error of a read whose rows are not in memory. Pure decisions read rows through functions that may throw this error, and do not catch
// it.

/**
 * Thrown by a read that the store cannot do synchronously. The group commit undoes the operation, loads the row, and performs the operation
 * again.
 */
export class Missing extends Error {
  /** What the store needs to load the row; `all` has several reads instead. */
  readonly read: unknown;
  readonly all: readonly Missing[];

  constructor(read: unknown) {
    super("The rows are not loaded yet.");
    this.read = read;
    this.all = Array.isArray(read) ? (read as Missing[]).flatMap(({ all }) => all) : [this];
  }
}
