/** Receives each failure that is tried again, and its end. The listener reports each of them once. */
export interface FailureListener {
  /** `what` names it, such as "publishing to the stream GPU". May be called for every try. `peer` is the server that failed, if it was one. */
  failing(what: string, error: unknown, peer?: string): void;
  /** It works. Has no effect unless it was failing. */
  working(what: string, peer?: string): void;
}
