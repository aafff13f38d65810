// Attempts that still run although their command had lapsed or their hold was lost. Workers of other implementations execute every command
// that they read, and do not stop when a later one is sent. While no worker has claimed the newest offer, the running worker becomes its
// holder: its reports about its own epoch count for that offer. Each such task has a document until it ends.

import type { DocumentStore } from "../../../../engine/run/documents.ts";

interface LateAccept {
  /** The epoch in the worker's reports. */
  readonly epoch: number;
  readonly holder: string;
  /** The grant on the board. */
  readonly grant: number;
}

const kind = "flowkit-late";
/** Tasks whose end is remembered. Events are repeated only after a rebalance, and those are more recent. */
const endedMax = 10_000;

export class LateAccepts {
  readonly #documents: DocumentStore;
  readonly #accepted = new Map<string, LateAccept>();
  /**
   * For each task, the newest epoch whose end its worker has reported. A repeated event of such an epoch does not mean that it still runs.
   */
  readonly #ended = new Map<string, number>();

  constructor(documents: DocumentStore) {
    this.#documents = documents;
  }

  /** Reads the stored documents. Returns their tasks. */
  async load(): Promise<readonly string[]> {
    for await (const { name, body } of this.#documents.eachDocument(kind)) this.#accepted.set(name, JSON.parse(body) as LateAccept);
    return [...this.#accepted.keys()];
  }

  /** The grant for a report of this worker about this epoch: nearly always the epoch itself. */
  grantOf(taskId: string, epoch: number, holder: string): number {
    const accepted = this.#accepted.get(taskId);
    return accepted !== undefined && accepted.epoch === epoch && accepted.holder === holder ? accepted.grant : epoch;
  }

  async keep(taskId: string, accepted: LateAccept): Promise<void> {
    this.#accepted.set(taskId, accepted);
    await this.#documents.keepDocument({ kind, name: taskId, version: 1, body: JSON.stringify(accepted) }, { own: true });
  }

  /** The worker has reported the end of this epoch. */
  ended(taskId: string, epoch: number): void {
    this.#ended.delete(taskId);
    const [oldest] = this.#ended.keys();
    if (oldest !== undefined && this.#ended.size >= endedMax) this.#ended.delete(oldest);
    this.#ended.set(taskId, epoch);
  }

  hasEnded(taskId: string, epoch: number): boolean {
    return epoch <= (this.#ended.get(taskId) ?? 0);
  }

  /** Whether there is something to drop. */
  has(taskId: string): boolean {
    return this.#accepted.has(taskId) || this.#ended.has(taskId);
  }

  async drop(taskId: string): Promise<void> {
    this.#ended.delete(taskId);
    if (this.#accepted.delete(taskId)) await this.#documents.removeDocument(kind, taskId);
  }
}
