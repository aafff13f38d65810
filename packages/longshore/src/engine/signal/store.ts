// The port of signals to a store.

import type { NewSignal, Signal } from "./signal.ts";

export interface SignalQuery {
  /** Only kept signals, or only those that a step has taken. Default: both. */
  readonly state?: "kept" | "taken";
  /** Only signals behind this number. */
  readonly after?: number;
  readonly limit: number;
}

export interface SignalPage {
  readonly items: readonly Signal[];
  /** The `after` of the next page; null when there is none. */
  readonly next: number | null;
}

export interface SignalStore {
  /**
   * Sends a signal to a run, and returns it as it is afterwards: kept, or taken by a step. When the run has a signal with the same key,
   * nothing changes, and that signal is returned. Throws LONGSHORE_NOT_FOUND for an unknown run, LONGSHORE_CONFLICT for one that has ended,
   * LONGSHORE_LIMIT when the run keeps too many, and LONGSHORE_BAD_INPUT for a bad name or key.
   */
  send(runId: string, signal: NewSignal): Promise<Signal>;
  /** The names of the signals that open steps of a run wait for: of the first ones, each once. */
  awaited(runId: string): Promise<readonly string[]>;
  /** The signals of a run, oldest first. A page may have fewer than `limit` when their values are long. */
  list(runId: string, query: SignalQuery): Promise<SignalPage>;
}
