/** Is notified of each failure that is retried, and of its end. The listener reports each of them once. */
export interface FailureListener {
  /**
   * `what` names the operation, such as "publishing to the stream GPU". May be called for every try. `peer` is the server that failed, if
   * there is one.
   */
  failing(what: string, error: unknown, peer?: string): void;
  /** The operation works again. Has no effect when it was not failing. */
  working(what: string, peer?: string): void;
}
