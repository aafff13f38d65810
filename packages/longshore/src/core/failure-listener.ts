/** Receives the failures of operations that are retried. It reports the first failure of an operation, and when the operation works again. */
export interface FailureListener {
  /**
   * A try has failed. `what` names the operation, such as "publishing to the stream GPU". May be called for every try. `peer` is the server
   * that failed, if there is one.
   */
  failing(what: string, error: unknown, peer?: string): void;
  /** The operation works again. Has no effect when it was not failing. */
  working(what: string, peer?: string): void;
}
