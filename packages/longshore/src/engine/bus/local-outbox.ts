// The outbox as rows, found by the fields that identify a message. Rows of finished messages stay for a while, so that repeated messages
// are recognised.

import type { OutboxMessage, OutboxStore, Outcome, StoredMessage } from "../../core/bus/outbox-store.ts";
import type { Clock } from "../../core/clock.ts";
import { Additions, Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { type OutboxRow, outboxIdTable, outboxTable, printOf } from "../tables/outbox.ts";
import type { Tx } from "../tx.ts";

/** Every sender stops repeating a message earlier. */
const sentMsMax = 24 * 3_600_000;
/** Failed messages are kept longer, because people inspect them. */
const failedMsMax = 7 * 24 * 3_600_000;
/** Interval between removals of old rows, and how many are removed at once. */
const pruneMs = 60_000;
const prunedMax = 2_000;

export interface LocalOutboxDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
}

export class LocalOutbox implements OutboxStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #rows: Rows<OutboxRow>;
  readonly #stored: TableRows<OutboxRow>;
  readonly #ids: TableRows<Pick<OutboxRow, "id">>;
  readonly #removals: Additions<number>;
  /** Owners that have not left. When one of them reads, it takes over the pending messages of owners that have left. */
  readonly #live = new Set<string>();
  /** Null until the first operation reads it. */
  #lastId: number | null = null;
  #prunedAt = 0;

  constructor({ store, commit, clock }: LocalOutboxDeps) {
    this.#commit = commit;
    this.#clock = clock;
    const stored = store.table(outboxTable);
    this.#stored = stored;
    this.#ids = store.table(outboxIdTable);
    this.#rows = new Rows<OutboxRow>(commit, {
      load(tx, print) {
        const [row] = stored.scan(tx, { by: ["print"], equal: [print], limit: 1 });
        return row ?? null;
      },
      save: (row) => stored.write(row),
      keep: () => "no",
      keptMax: 0,
    });
    this.#removals = new Additions(commit, (id) => stored.remove([id]));
  }

  add(owner: string, message: OutboxMessage): Promise<StoredMessage | null> {
    this.#live.add(owner);
    return this.#commit.run((tx) => {
      const print = printOf(message);
      if (this.#rows.get(tx, print) !== null) return null;
      this.#lastId ??= this.#highestId(tx);
      const id = ++this.#lastId;
      const now = this.#clock.now();
      const row: OutboxRow = { ...message, id, owner, state: "pending", attempts: 0, dueAt: now, error: null, endedAt: null };
      this.#rows.put(tx, print, row, true);
      this.#pruneSometimes(tx, now);
      return row;
    });
  }

  pending(owner: string, after: number, limit: number): Promise<StoredMessage[]> {
    this.#live.add(owner);
    return this.#commit.run((tx) => {
      const mine: StoredMessage[] = [];
      for (let from = after; mine.length < limit; ) {
        const page = [...this.#stored.scan(tx, { by: ["id"], only: { state: "pending" }, above: [from], limit })];
        for (const stored of page) {
          const row = this.#rows.newest(tx, printOf(stored), stored) ?? stored;
          if (row.state !== "pending") continue;
          if (row.owner !== owner && this.#live.has(row.owner)) continue;
          if (row.owner !== owner) this.#rows.put(tx, printOf(row), { ...row, owner });
          mine.push(row);
        }
        if (page.length < limit) break;
        from = page.at(-1)?.id ?? from;
      }
      return mine;
    });
  }

  settle(message: StoredMessage, outcome: Outcome): Promise<void> {
    return this.#commit.run((tx) => {
      const print = printOf(message);
      const row = this.#rows.get(tx, print);
      if (row === null || row.state !== "pending") return;
      const endedAt = outcome.state === "pending" ? null : this.#clock.now();
      this.#rows.put(tx, print, { ...row, error: null, ...outcome, endedAt });
    });
  }

  leave(owner: string): void {
    this.#live.delete(owner);
  }

  #pruneSometimes(tx: Tx, now: number): void {
    const before = this.#prunedAt;
    if (now < before + pruneMs) return;
    this.#prunedAt = now;
    tx.undo(() => {
      this.#prunedAt = before;
    });
    this.#prune(tx, "sent", now - sentMsMax);
    this.#prune(tx, "failed", now - failedMsMax);
  }

  #prune(tx: Tx, state: Outcome["state"], endedBefore: number): void {
    const over = { by: ["state", "ended_at"], equal: [state], having: "ended_at", below: [endedBefore], limit: prunedMax };
    for (const { id } of this.#ids.scan(tx, over)) this.#removals.add(tx, id);
  }

  #highestId(tx: Tx): number {
    const [highest] = this.#ids.scan(tx, { by: ["id"], backwards: true, limit: 1 });
    return highest?.id ?? 0;
  }
}
