// Whether this server can do its work: above all, whether the store can be written. Each write notices a full disk or a data folder that is
// gone. A server without writes looks for its folder at each question (the look has a limit of its own), and tries to write now and then.

import type { Clock } from "../clock.ts";
import type { GroupCommit, Writable } from "../engine/commit.ts";
import type { Database } from "../store/sqlite/driver.ts";

export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  readonly store: "ok" | "unavailable";
  /** Why the store cannot be written. */
  readonly message?: string;
  readonly uptimeSeconds: number;
}

export interface HealthOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  version: string;
  /** Aborted when the server begins to close. */
  closing: AbortSignal;
}

/** A store that was written this long ago counts as writable; an idle one is tried again after it. */
const freshMs = 10_000;

export class HealthCheck {
  readonly #options: HealthOptions;
  readonly #probe: Probe;
  readonly #startedAt: number;
  #seenCommits = 0;
  #writtenAt = Number.NEGATIVE_INFINITY;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#probe = new Probe(options.db, options.commit);
    this.#startedAt = options.clock.now();
  }

  /** The same for a program that sends work here: a server that closes takes none, however well it is. */
  async ready(): Promise<Health> {
    const health = await this.look();
    return this.#options.closing.aborted ? { ...health, status: "unavailable", message: "The server is closing." } : health;
  }

  async look(): Promise<Health> {
    const { version, clock } = this.#options;
    const message = await this.#trouble();
    const store = message === undefined ? "ok" : "unavailable";
    return { status: store, version, store, message, uptimeSeconds: Math.floor((clock.now() - this.#startedAt) / 1_000) };
  }

  async #trouble(): Promise<string | undefined> {
    const { commit, clock } = this.#options;
    if (commit.commits !== this.#seenCommits) this.#writtenAt = clock.now();
    this.#seenCommits = commit.commits;
    commit.lookForFile();
    if (commit.unavailable === null && clock.now() - this.#writtenAt < freshMs) return undefined;
    try {
      await this.#probe.writeOnce();
    } catch (error) {
      return (error as Error).message;
    }
    this.#seenCommits = commit.commits;
    this.#writtenAt = clock.now();
    return undefined;
  }
}

/** Writes one page with its old content: the smallest change that a disk can refuse. */
class Probe implements Writable {
  readonly #db: Database;
  readonly #commit: GroupCommit;
  dirty = false;

  constructor(db: Database, commit: GroupCommit) {
    this.#db = db;
    this.#commit = commit;
    commit.join(this);
  }

  write(): void {
    if (!this.dirty) return;
    const version = Number(this.#db.prepare("PRAGMA user_version").get()?.user_version);
    this.#db.exec(`PRAGMA user_version=${version}`);
  }

  applied(): void {
    this.dirty = false;
  }

  /** Resolves when the disk has taken it. */
  writeOnce(): Promise<void> {
    return this.#commit.run((tx) => {
      this.dirty = true;
      tx.undo(() => {
        this.dirty = false;
      });
    });
  }
}
