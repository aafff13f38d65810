// Registrations of workers as rows. They are written together with the next commit of other changes. When there is none within a second, they
// get one commit together. So a poll or heartbeat waits for no commit.

import type { Clock } from "../../core/clock.ts";
import type { Slices } from "../../core/slices/slices.ts";
import { eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, TableSpec } from "../rows.ts";
import type { Writable } from "../writables.ts";
import type { Registration, Unwritten } from "./worker-view.ts";
import { Workers, type WorkersOptions } from "./workers.ts";

export interface LocalWorkersDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  slices?: Slices;
  cordonOf?: WorkersOptions["cordonOf"];
}

/** Maximum time that a registration waits for another operation's commit. */
const flushMs = 1_000;

const workerTable: TableSpec<Registration> = {
  name: "worker",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["protocol", ({ protocol }) => protocol],
    ["labels", ({ labels }) => JSON.stringify(labels)],
    ["registered_at", ({ registeredAt }) => registeredAt],
    ["seen_at", ({ seenAt }) => seenAt],
  ],
  of: (row) => ({
    id: row.id as string,
    protocol: row.protocol as string,
    labels: JSON.parse(row.labels as string) as string[],
    registeredAt: row.registered_at as number,
    seenAt: row.seen_at as number,
  }),
};

export class LocalWorkers implements Writable {
  readonly workers: Workers;
  readonly #options: LocalWorkersDeps;
  readonly #rows: TableRows<Registration>;
  #cancelTimer: (() => void) | null = null;
  /** True while an operation forces a commit that has nothing else to write. */
  #wanted = false;
  /** What the current transaction writes, and the number of commits before it. */
  #writing: { readonly what: Unwritten; readonly after: number } | null = null;

  constructor(options: LocalWorkersDeps) {
    const { store, commit, clock, slices, cordonOf } = options;
    this.#options = options;
    this.#rows = store.table(workerTable);
    this.workers = new Workers({ clock, slices, cordonOf, changed: () => this.#arm() });
    commit.join(this);
  }

  /** Loads the stored registrations; must be called once, before anything else. */
  recover(): Promise<void> {
    const at = ({ id }: Registration) => [id];
    return eachRow(this.#options.commit, this.#rows, { by: ["id"] }, { at, take: (registration) => this.workers.restore(registration) });
  }

  get dirty(): boolean {
    return this.#wanted;
  }

  write(): void {
    if (!this.workers.hasUnwritten) return;
    const what = this.workers.unwritten();
    for (const id of what.forgotten) this.#rows.remove([id]);
    for (const registration of what.registrations) this.#rows.write(registration);
    this.#writing = { what, after: this.#options.commit.commits };
  }

  applied(): void {
    this.#wanted = false;
    // The count rises only when the transaction was committed; otherwise the changes wait for the next one.
    if (this.#writing !== null && this.#options.commit.commits > this.#writing.after) {
      this.workers.written(this.#writing.what);
      if (this.workers.hasUnwritten) this.#arm();
    }
    this.#writing = null;
  }

  /** Writes pending changes; must be called just before the commit is closed. */
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
    if (!this.workers.hasUnwritten) return;
    const writing = this.#options.commit.run(() => {
      this.#wanted = true;
    });
    // On a full disk the changes stay pending and are written by the first commit that succeeds; on a closed store they are not needed.
    writing.catch(() => {});
  }
}
