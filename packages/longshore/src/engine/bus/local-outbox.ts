// The outbox as rows, found by what makes a message the same as another. Rows of messages that are over stay for a while, since they are
// what leaves a repetition out.

import type { OutboxMessage, OutboxStore, Outcome, StoredMessage } from "../../bus/outbox.ts";
import type { Clock } from "../../clock.ts";
import { Additions, Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Tx } from "../tx.ts";
import type { Database, SqlRow } from "../../store/sqlite/driver.ts";

/** Longer than any sender repeats. */
const sentMsMax = 24 * 3_600_000;
/** Failures are looked at by people. */
const failedMsMax = 7 * 24 * 3_600_000;
/** Between two looks for rows that are over for long enough, and how many go at once. */
const pruneMs = 60_000;
const prunedMax = 2_000;

interface OutboxRow extends StoredMessage {
  readonly owner: string;
  readonly state: Outcome["state"];
  readonly error: string | null;
  readonly endedAt: number | null;
}

export class LocalOutbox implements OutboxStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #rows: Rows<OutboxRow>;
  readonly #prunings: Additions<number>;
  readonly #page: (after: number, limit: number) => SqlRow[];
  readonly #live = new Set<string>();
  #lastId: number;
  #prunedAt = 0;

  constructor({ db, commit, clock }: { db: Database; commit: GroupCommit; clock: Clock }) {
    this.#commit = commit;
    this.#clock = clock;
    const byPrint = db.prepare("SELECT * FROM outbox WHERE print = ?");
    const save = db.prepare(
      "INSERT OR REPLACE INTO outbox (id, print, topic, key, dedup_id, value, retry, owner, state, attempts, due_at, error, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#rows = new Rows<OutboxRow>(commit, {
      load(print) {
        const row = byPrint.get(print);
        return row === undefined ? null : rowOf(row);
      },
      save: (row) =>
        save.run(
          ...[row.id, printOf(row), row.topic, row.key, row.dedupId, Buffer.from(row.value), row.retry ?? 0, row.owner],
          ...[row.state, row.attempts, row.dueAt, row.error, row.endedAt],
        ),
      keep: () => "no",
      keptMax: 0,
    });
    const prune = db.prepare(
      "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE ended_at < ? AND state = ? ORDER BY ended_at LIMIT ?)",
    );
    this.#prunings = new Additions(commit, (now) => {
      prune.run(now - sentMsMax, "sent", prunedMax);
      prune.run(now - failedMsMax, "failed", prunedMax);
    });
    const page = db.prepare("SELECT * FROM outbox WHERE state = 'pending' AND id > ? ORDER BY id LIMIT ?");
    this.#page = (after, limit) => page.all(after, limit);
    this.#lastId = Number(db.prepare("SELECT max(id) AS id FROM outbox").get()?.id ?? 0);
  }

  add(owner: string, message: OutboxMessage): Promise<StoredMessage | null> {
    this.#live.add(owner);
    return this.#commit.run((tx) => {
      const print = printOf(message);
      if (this.#rows.get(tx, print) !== null) return null;
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
        const page = this.#page(from, limit).map(rowOf);
        for (const row of page) {
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
    if (now < this.#prunedAt + pruneMs) return;
    const before = this.#prunedAt;
    this.#prunedAt = now;
    tx.undo(() => {
      this.#prunedAt = before;
    });
    this.#prunings.add(tx, now);
  }
}

function printOf({ topic, key, dedupId }: OutboxMessage): string {
  return JSON.stringify([topic, key, dedupId]);
}

function rowOf(row: SqlRow): OutboxRow {
  return {
    id: row.id as number,
    topic: row.topic as string,
    key: row.key as string,
    dedupId: row.dedup_id as string,
    value: Buffer.from(row.value as Uint8Array).toString("utf8"),
    retry: row.retry as number,
    owner: row.owner as string,
    state: row.state as Outcome["state"],
    attempts: row.attempts as number,
    dueAt: row.due_at as number,
    error: row.error as string | null,
    endedAt: row.ended_at as number | null,
  };
}
