// Whether this server can do its work: above all, whether the store can be written. Each write notices a full disk or a data folder that is
// gone. A server without writes checks its folder at requests, up to a rate limit, and tries to write from time to time.

import type { Clock } from "../../../core/clock.ts";
import type { Storage } from "../../server-half.ts";

export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  readonly store: "ok" | "unavailable";
  /** Why the store cannot be written. */
  readonly message?: string;
  readonly uptimeSeconds: number;
}

export interface HealthDeps {
  storage: Storage;
  clock: Clock;
  version: string;
  /** Aborted when the server begins to close. */
  closing: AbortSignal;
}

/** A store that was written within this time counts as writable; after it, an idle store is tried again. */
const freshMs = 10_000;

export class HealthCheck {
  readonly #deps: HealthDeps;
  readonly #startedAt: number;
  #seenCommits = 0;
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(deps: HealthDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
  }

  /** The same for a program that sends work here: a server that is closing accepts none. */
  async ready(): Promise<Health> {
    const health = await this.look();
    return this.#deps.closing.aborted ? { ...health, status: "unavailable", message: "The server is closing." } : health;
  }

  async look(): Promise<Health> {
    const { version, clock } = this.#deps;
    const message = await this.#trouble();
    const store = message === undefined ? "ok" : "unavailable";
    return { status: store, version, store, message, uptimeSeconds: Math.floor((clock.now() - this.#startedAt) / 1_000) };
  }

  async #trouble(): Promise<string | undefined> {
    const { storage, clock } = this.#deps;
    if (storage.commits !== this.#seenCommits) this.#writtenAt = clock.now();
    this.#seenCommits = storage.commits;
    storage.look();
    if (storage.unavailable === null && clock.now() - this.#writtenAt < freshMs) return undefined;
    try {
      await storage.tryWrite();
    } catch (error) {
      return (error as Error).message;
    }
    this.#seenCommits = storage.commits;
    this.#writtenAt = clock.now();
    return undefined;
  }
}
