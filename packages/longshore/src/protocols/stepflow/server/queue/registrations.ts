// The registered components of a queue's workers. Each connected worker has its own list: releases name the same component differently, and
// each worker must get the name that it sent. The combined list is stored as a document, so that a restarted server knows it before the
// workers reconnect.

import type { DocumentStore } from "../../../../engine/run/documents.ts";
import { componentsBody, componentsMax, componentsOn, keepComponents, type RegisteredComponent } from "../config/registered-components.ts";

interface Registration {
  readonly components: readonly RegisteredComponent[];
  readonly chars: number;
}

/** Maximum number of characters of all lists that are kept for the workers of one queue: one list may have megabytes. */
const charsMax = 8 * 1_024 * 1_024;

export class Registrations {
  readonly #documents: DocumentStore;
  readonly #lane: string;
  /** By worker, oldest first. */
  readonly #byWorker = new Map<object, Registration>();
  #chars = 0;
  /** Undefined until it has been read; null when no worker has ever registered. */
  #kept: readonly RegisteredComponent[] | null | undefined;

  constructor(documents: DocumentStore, lane: string) {
    this.#documents = documents;
    this.#lane = lane;
  }

  /** The components of `worker`, else those of the queue. Null when none were ever registered. */
  async known(worker?: object): Promise<readonly RegisteredComponent[] | null> {
    const own = worker === undefined ? undefined : this.componentsOf(worker);
    if (own !== undefined) return own;
    if (this.#kept === undefined) this.#kept = await componentsOn(this.#documents, this.#lane);
    return this.#kept;
  }

  /** The components of a connected worker. */
  componentsOf(worker: object): readonly RegisteredComponent[] | undefined {
    return this.#byWorker.get(worker)?.components;
  }

  /** Resolves when the list is stored. Without `worker`, the list replaces that of all workers. */
  async tell(components: readonly RegisteredComponent[], worker?: object): Promise<void> {
    if (worker !== undefined) this.#remember(worker, components);
    const together = worker === undefined ? components : this.#together(components);
    const before = await this.known();
    if (before !== null && componentsBody(before) === componentsBody(together)) return;
    await keepComponents(this.#documents, this.#lane, together);
    this.#kept = together;
  }

  /** The stored list stays, because this worker or a similar one is likely to reconnect. */
  leave(worker: object): void {
    this.#chars -= this.#byWorker.get(worker)?.chars ?? 0;
    this.#byWorker.delete(worker);
  }

  /** A worker whose list exceeds the budget uses the combined list. */
  #remember(worker: object, components: readonly RegisteredComponent[]): void {
    this.leave(worker);
    const { length: chars } = componentsBody(components);
    if (this.#chars + chars > charsMax) return;
    this.#byWorker.set(worker, { components, chars });
    this.#chars += chars;
  }

  /** The newest entry for each path counts. When there are more than `componentsMax` paths, the first ones stay. */
  #together(newest: readonly RegisteredComponent[]): RegisteredComponent[] {
    const byPath = new Map<string, RegisteredComponent>();
    for (const components of [...[...this.#byWorker.values()].map((registration) => registration.components), newest]) {
      for (const component of components) {
        if (byPath.size < componentsMax || byPath.has(component.path)) byPath.set(component.path, component);
      }
    }
    return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }
}
