/** Told of a failure that is tried again, and of its end; whoever listens says it once. */
export interface ReaderTrouble {
  failing(what: string, error: unknown): void;
  working(what: string): void;
}
