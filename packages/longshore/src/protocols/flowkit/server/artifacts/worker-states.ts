// The states that workers store about their runs, for a restart. A worker removes the state when its run ends. The remaining ones belong to
// workers that are busy or have died.

import type { Clock } from "../../../../core/clock.ts";
import { isObject } from "../../../../core/json/json.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { ActiveRun } from "../../wire/shapes.ts";

const kind = "flowkit-worker-state";
/** A worker that has not returned for a week will not return. FlowKit's own store has the same limit. */
const keptMs = 7 * 86_400_000;
/** How often old states are searched for, when others are written. */
const sweepMs = 3_600_000;

export class WorkerStates {
  readonly #documents: DocumentStore;
  readonly #clock: Clock;
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(documents: DocumentStore, clock: Clock) {
    this.#documents = documents;
    this.#clock = clock;
  }

  async load(workerId: string): Promise<ActiveRun | null> {
    const found = await this.#documents.document(kind, workerId);
    if (found === undefined || this.#isOld(found.updatedAt)) return null;
    const run = JSON.parse(found.body) as unknown;
    return isObject(run) ? (run as unknown as ActiveRun) : null;
  }

  async save(workerId: string, run: ActiveRun | null): Promise<void> {
    if (run === null) await this.#documents.removeDocument(kind, workerId);
    else await this.#documents.keepDocument({ kind, name: workerId, version: 1, body: JSON.stringify(run) });
    await this.#sweep();
  }

  async #sweep(): Promise<void> {
    const now = this.#clock.now();
    if (now - this.#sweptAt < sweepMs) return;
    this.#sweptAt = now;
    for await (const { name, updatedAt } of this.#documents.eachDocument(kind)) {
      if (this.#isOld(updatedAt)) await this.#documents.removeDocument(kind, name);
    }
  }

  #isOld(updatedAt: number): boolean {
    return this.#clock.now() - updatedAt > keptMs;
  }
}
