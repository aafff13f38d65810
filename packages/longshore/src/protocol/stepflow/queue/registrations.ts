// What the workers of a queue have said they can do. A worker that stays connected is remembered for itself: releases name the same
// component differently, and each is sent the name that it gave. What all of them can do together is kept as a document, so that a server
// which has just started knows it before they come back.

import type { DocumentStore } from "../../../run/documents.ts";
import { componentsBody, componentsOn, keepComponents, type RegisteredComponent } from "../config/registered.ts";

export class Registrations {
  readonly #documents: DocumentStore;
  readonly #lane: string;
  /** By who said it, oldest first. */
  readonly #told = new Map<object, readonly RegisteredComponent[]>();
  /** Undefined until it has been looked up; null when nobody has ever told. */
  #kept: readonly RegisteredComponent[] | null | undefined;

  constructor(documents: DocumentStore, lane: string) {
    this.#documents = documents;
    this.#lane = lane;
  }

  /** What `worker` said itself, else what is known of the queue; null when nobody has ever told. */
  async known(worker?: object): Promise<readonly RegisteredComponent[] | null> {
    const own = worker === undefined ? undefined : this.#told.get(worker);
    if (own !== undefined) return own;
    if (this.#kept === undefined) this.#kept = await componentsOn(this.#documents, this.#lane);
    return this.#kept;
  }

  /** What a worker that is connected has said itself. */
  toldBy(worker: object): readonly RegisteredComponent[] | undefined {
    return this.#told.get(worker);
  }

  /** Resolves when it is kept. Without a worker that stays connected, the list is taken for that of all of them. */
  async tell(components: readonly RegisteredComponent[], worker?: object): Promise<void> {
    if (worker !== undefined) {
      this.#told.delete(worker);
      this.#told.set(worker, components);
    }
    const together = worker === undefined ? components : this.#together();
    const before = await this.known();
    if (before !== null && componentsBody(before) === componentsBody(together)) return;
    await keepComponents(this.#documents, this.#lane, together);
    this.#kept = together;
  }

  /** What it can do stays known: it, or one like it, is likely to come back. */
  leave(worker: object): void {
    this.#told.delete(worker);
  }

  /** The newest word on each path counts. */
  #together(): RegisteredComponent[] {
    const byPath = new Map<string, RegisteredComponent>();
    for (const components of this.#told.values()) for (const component of components) byPath.set(component.path, component);
    return [...byPath.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }
}
