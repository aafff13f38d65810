// The registered components of a queue's workers. A worker that stays connected is remembered for itself: releases name the same
// component differently, and each is sent the name that it gave. What all of them can do together is kept as a document, so that a server
// which has just started knows it before they come back.

import type { DocumentStore } from "../../../../engine/run/documents.ts";
import { componentsBody, componentsMax, componentsOn, keepComponents, type RegisteredComponent } from "../config/registered-components.ts";

interface Registration {
  readonly components: readonly RegisteredComponent[];
  readonly chars: number;
}

/** Of all lists that are remembered for the workers of one queue: thousands of workers may be connected, and a list may have megabytes. */
const charsMax = 8 * 1_024 * 1_024;

export class Registrations {
  readonly #documents: DocumentStore;
  readonly #lane: string;
  /** By worker, oldest first. */
  readonly #byWorker = new Map<object, Registration>();
  #chars = 0;
  /** Undefined until it has been looked up; null when no worker has ever registered any. */
  #kept: readonly RegisteredComponent[] | null | undefined;

  constructor(documents: DocumentStore, lane: string) {
    this.#documents = documents;
    this.#lane = lane;
  }

  /** The components of `worker` itself, else those known of the queue; null when none were ever registered. */
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

  /** Resolves when it is kept. Without a worker that stays connected, the list is taken for that of all of them. */
  async tell(components: readonly RegisteredComponent[], worker?: object): Promise<void> {
    if (worker !== undefined) this.#remember(worker, components);
    const together = worker === undefined ? components : this.#together(components);
    const before = await this.known();
    if (before !== null && componentsBody(before) === componentsBody(together)) return;
    await keepComponents(this.#documents, this.#lane, together);
    this.#kept = together;
  }

  /** What it can do stays known: it, or one like it, is likely to come back. */
  leave(worker: object): void {
    this.#chars -= this.#byWorker.get(worker)?.chars ?? 0;
    this.#byWorker.delete(worker);
  }

  /** Where there is no room for its own list, a worker is served by what all of them can do together. */
  #remember(worker: object, components: readonly RegisteredComponent[]): void {
    this.leave(worker);
    const { length: chars } = componentsBody(components);
    if (this.#chars + chars > charsMax) return;
    this.#byWorker.set(worker, { components, chars });
    this.#chars += chars;
  }

  /** The newest word on each path counts. Beyond as many paths as one worker may have, those that came first stay. */
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
