// Attempts whose command had lapsed when their worker read it, or whose hold was lost, and that work all the same. A worker of another make
// runs whatever command it reads, and does not stop for a later one. So while no worker has taken up the newest offer, the one that works
// becomes its holder: what it reports about its own epoch counts for that offer. One document for each such task, until the task ends.

import type { DocumentStore } from "../../../../engine/run/documents.ts";

interface LateAccept {
  /** As the worker reports it. */
  readonly epoch: number;
  readonly holder: string;
  /** As the board has it. */
  readonly grant: number;
}

const kind = "flowkit-late";
/** Tasks whose last word is remembered. Events come again only after a rebalance, and those are younger. */
const endedMax = 10_000;

export class LateAccepts {
  readonly #documents: DocumentStore;
  readonly #accepted = new Map<string, LateAccept>();
  /** The newest epoch of each task that its worker has ended with a report: it works no more, whatever comes twice. */
  readonly #ended = new Map<string, number>();

  constructor(documents: DocumentStore) {
    this.#documents = documents;
  }

  /** What was kept before; returns of which tasks. */
  async load(): Promise<readonly string[]> {
    for await (const { name, body } of this.#documents.eachDocument(kind)) this.#accepted.set(name, JSON.parse(body) as LateAccept);
    return [...this.#accepted.keys()];
  }

  /** The grant that a report of this worker about this epoch is for: nearly always the epoch itself. */
  grantOf(taskId: string, epoch: number, holder: string): number {
    const accepted = this.#accepted.get(taskId);
    return accepted !== undefined && accepted.epoch === epoch && accepted.holder === holder ? accepted.grant : epoch;
  }

  async keep(taskId: string, accepted: LateAccept): Promise<void> {
    this.#accepted.set(taskId, accepted);
    await this.#documents.keepDocument({ kind, name: taskId, version: 1, body: JSON.stringify(accepted) }, { own: true });
  }

  /** Its worker has reported the end of this epoch. */
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
