// Registrations of workers on SQLite. They ride along with whatever is committed anyway; when nothing else is, they are written
// within a second. No poll or heartbeat ever costs a commit of its own.

import type { Clock } from "../../clock.ts";
import { type Registration, Workers } from "./workers.ts";
import type { GroupCommit, Writable } from "../commit.ts";
import type { Slices } from "../../slices.ts";
import type { Database } from "../../store/sqlite/driver.ts";

export interface LocalWorkersDeps {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  slices?: Slices;
}

/** The longest that a registration waits for another operation's commit. */
const flushMs = 1_000;

export class LocalWorkers implements Writable {
  readonly workers: Workers;
  readonly #options: LocalWorkersDeps;
  readonly #save: (row: Registration) => void;
  readonly #remove: (id: string) => void;
  #cancelTimer: (() => void) | null = null;
  /** True while an operation requests a commit that would otherwise have nothing to write. */
  #wanted = false;
  /** How many commits there had been when the pending changes were last written; null when they were not. */
  #writtenIn: number | null = null;

  constructor(options: LocalWorkersDeps) {
    const { db, commit, clock } = options;
    this.#options = options;
    const upsert = db.prepare("INSERT OR REPLACE INTO worker (id, protocol, labels, registered_at, seen_at) VALUES (?, ?, ?, ?, ?)");
    this.#save = (row) => upsert.run(row.id, row.protocol, JSON.stringify(row.labels), row.registeredAt, row.seenAt);
    const remove = db.prepare("DELETE FROM worker WHERE id = ?");
    this.#remove = (id) => remove.run(id);
    this.workers = new Workers({ clock, slices: options.slices, registrations: load(db), changed: () => this.#arm() });
    commit.join(this);
  }

  get dirty(): boolean {
    return this.#wanted;
  }

  write(): void {
    const { registrations, forgotten } = this.workers.unwritten();
    if (registrations.length + forgotten.length === 0) return;
    for (const id of forgotten) this.#remove(id);
    for (const row of registrations) this.#save(row);
    this.#writtenIn = this.#options.commit.commits;
  }

  applied(): void {
    this.#wanted = false;
    // The count rises only when the transaction succeeded; otherwise the changes wait for the next one.
    if (this.#writtenIn !== null && this.#options.commit.commits > this.#writtenIn) this.workers.written();
    this.#writtenIn = null;
  }

  /** Writes what is pending; to be called just before the commit is closed. */
  close(): void {
    this.#cancelTimer?.();
    this.#flush();
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#cancelTimer?.();
    this.#cancelTimer = clock.at(clock.now() + flushMs, () => {
      this.#cancelTimer = null;
      this.#flush();
    });
  }

  #flush(): void {
    const { registrations, forgotten } = this.workers.unwritten();
    if (registrations.length + forgotten.length === 0) return;
    const asked = this.#options.commit.run(() => {
      this.#wanted = true;
    });
    // On a full disk the changes stay pending and are written by the first commit that succeeds; on a closed store they are not needed.
    asked.catch(() => {});
  }
}

function load(db: Database): Registration[] {
  const rows = db.prepare("SELECT id, protocol, labels, registered_at, seen_at FROM worker").all();
  return rows.map((row) => ({
    id: row.id as string,
    protocol: row.protocol as string,
    labels: JSON.parse(row.labels as string) as string[],
    registeredAt: row.registered_at as number,
    seenAt: row.seen_at as number,
  }));
}
