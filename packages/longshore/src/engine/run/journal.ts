/** Reads the journals of durable functions, for the workers that replay them. */
export interface JournalReader {
  /** JSON text of a `JournalPage` (core/turn.ts) with the commands that follow number `after`; undefined when there is no such run. */
  page(runId: string, after: number): Promise<string | undefined>;
}
