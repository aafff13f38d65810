/** Receives each failure that is tried again, and its end. The listener reports each of them once. */
export interface FailureListener {
  /** `what` names it, such as "publishing to the stream GPU". May be called for every try. */
  failing(what: string, error: unknown): void;
  /** It works. Has no effect unless it was failing. */
  working(what: string): void;
}
