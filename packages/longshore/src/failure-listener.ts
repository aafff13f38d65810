/** Notified of each failure that is tried again, and of its end; whoever listens says each of them once. */
export interface Trouble {
  /** `what` names it, such as "publishing to the stream GPU"; again and again is fine. */
  failing(what: string, error: unknown): void;
  /** It works; nothing is said unless it had been failing. */
  working(what: string): void;
}
