// Which owner may write to the simulated database: the rows of its shards, and owners that follow the rules of store/postgres/owner.ts. Each
// transaction passes the fence of its shard. After a commit whose connection broke, the counter of the shard shows the outcome. An owner
// relies on its memory only while it has the lock, and only for the trusted part of its lease.

import type { Clock } from "../../src/core/clock.ts";
import type { LongshoreError } from "../../src/core/errors.ts";
import { Unavailable } from "../../src/engine/rows.ts";
import { deposed } from "../../src/store/postgres/errors.ts";

/** Shorter than the longest jump of the clock, so that an owner is late now and then without being replaced. */
export const leaseMs = 1_000;
const renewals = 5;
const trusted = 5 / 6;

/** The row of a shard. */
interface ShardRow {
  epoch: number;
  /** An epoch may occur twice after PostgreSQL has lost its last transactions, but a token does not. */
  token: number;
  seq: number;
  expiresAt: number;
  /** The session that has the lock: the token of an owner, or null. */
  lock: number | null;
}

/** Shards by number. Today one owner has shard 0; a simulation may have more. */
export class Shards {
  readonly #rows = new Map<number, ShardRow>();
  #tokens = 0;

  of(shard: number): ShardRow {
    const row = this.#rows.get(shard) ?? { epoch: 0, token: 0, seq: 0, expiresAt: Number.NEGATIVE_INFINITY, lock: null };
    this.#rows.set(shard, row);
    return row;
  }

  /** Whether another server may take the shard over now. */
  isFree(shard: number, now: number): boolean {
    const { lock, expiresAt } = this.of(shard);
    return lock === null || expiresAt <= now;
  }

  /** From here on every transaction of the old owner fails. */
  take(shard: number, now: number): { epoch: number; token: number; seq: number } {
    const row = this.of(shard);
    const token = ++this.#tokens;
    Object.assign(row, { epoch: row.epoch + 1, token, expiresAt: now + leaseMs, lock: token });
    return { epoch: row.epoch, token, seq: row.seq };
  }
}

export interface SimulatedOwnerOptions {
  readonly shards: Shards;
  readonly shard: number;
  readonly clock: Clock;
  /** Time that a message takes, in turns of the event loop. */
  pause(): Promise<void>;
  /** Whether the next query about an unknown commit, or its answer, is lost. */
  isAskingLost(): boolean;
  /** The outcome of a commit whose connection broke, for the trace. */
  say(what: string): void;
}

/** What happens to the connection on which a commit is sent. */
export type Break = "before" | "after" | "late";

/** Asks for the outcome of a commit before the owner gives up. */
const askingsMax = 1_000;

export class SimulatedOwner {
  readonly #options: SimulatedOwnerOptions;
  readonly #mine: { readonly epoch: number; readonly token: number };
  #seq: number;
  #ownedUntil: number;
  #gone: LongshoreError | null = null;
  #hasLock = true;
  #stopped = false;
  #cancelTimer: () => void = () => {};
  /** True while the process is stopped: it renews nothing. */
  isFrozen = false;

  constructor(options: SimulatedOwnerOptions) {
    this.#options = options;
    const now = options.clock.now();
    const { seq, ...mine } = options.shards.take(options.shard, now);
    this.#mine = mine;
    this.#seq = seq;
    this.#ownedUntil = now + leaseMs * trusted;
    this.#schedule();
  }

  /** The true outcome, which the owner itself may not know yet. */
  get isDeposed(): boolean {
    const { epoch, token } = this.#row;
    return epoch !== this.#mine.epoch || token !== this.#mine.token;
  }

  isOwned(): boolean {
    return this.#gone === null && this.#hasLock && this.#options.clock.now() < this.#ownedUntil;
  }

  isGone(): LongshoreError | null {
    return this.#gone;
  }

  /** The session with the lock ends: any other server may take over. */
  loseLock(): void {
    const row = this.#row;
    if (row.lock === this.#mine.token) row.lock = null;
  }

  /** The owner notices that. */
  noticeLoss(): void {
    this.#hasLock = false;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
    // A killed process loses its session.
    this.loseLock();
  }

  version(): number {
    return this.#seq;
  }

  /** The version that a load sees now; rejects when another server owns the data. */
  storedVersion(): number {
    if (this.isDeposed) throw this.#depose();
    return this.#row.seq;
  }

  /** Performs `write` as one transaction behind the fence. */
  async commit(write: () => void, fault: Break | null): Promise<void> {
    if (this.#gone !== null) throw this.#gone;
    const { pause, say, clock } = this.#options;
    const seq = this.#seq + 1;
    const askedAt = clock.now();
    await pause();
    if (fault === "before" || fault === "late") {
      say(`  the connection breaks before commit ${seq}`);
      const committed = await this.#settle(seq);
      if (committed) throw new Error("A commit that was not sent is said to be committed.");
      // A delayed transaction arrives: the counter has changed.
      if (fault === "late" && this.#passes(seq)) throw new Error("A late request passed the fence.");
      throw away("the connection broke before the commit");
    }
    if (!this.#passes(seq)) throw this.#depose();
    write();
    Object.assign(this.#row, { seq, expiresAt: Math.max(this.#row.expiresAt, clock.now() + leaseMs) });
    if (fault === "after") {
      say(`  the connection breaks after commit ${seq}`);
      if (!(await this.#settle(seq))) throw new Error("A commit that took effect is said to be not committed.");
      return;
    }
    await pause();
    this.#seq = seq;
    this.#renewed(askedAt);
  }

  get #row(): ShardRow {
    return this.#options.shards.of(this.#options.shard);
  }

  #passes(seq: number): boolean {
    return !this.isDeposed && this.#row.seq === seq - 1;
  }

  /** Whether a transaction was committed whose response was lost. */
  async #settle(seq: number): Promise<boolean> {
    const { pause, isAskingLost, say } = this.#options;
    for (let asked = 0; asked < askingsMax && !this.#stopped; asked++) {
      await pause();
      const isAnswerLost = isAskingLost();
      // A query may be lost, or its answer may be lost.
      if (isAnswerLost && isAskingLost()) continue;
      if (this.isDeposed) throw this.#depose();
      const row = this.#row;
      if (row.seq === seq - 1) row.seq = seq + 1;
      else if (row.seq === seq) row.seq = seq + 2;
      await pause();
      if (isAnswerLost) continue;
      this.#seq = row.seq;
      say(`  commit ${seq} is settled after ${asked + 1} questions: ${row.seq === seq + 2 ? "committed" : "not committed"}`);
      return row.seq === seq + 2;
    }
    this.#gone = deposed();
    throw new Unavailable(this.#gone);
  }

  #schedule(): void {
    if (this.#stopped || this.#gone !== null) return;
    const { clock } = this.#options;
    this.#cancelTimer = clock.at(clock.now() + leaseMs / renewals, () => {
      if (!this.isFrozen) this.#renew();
      this.#schedule();
    });
  }

  #renew(): void {
    const row = this.#row;
    if (this.isDeposed) {
      this.#depose();
      return;
    }
    row.lock ??= this.#mine.token;
    this.#hasLock = row.lock === this.#mine.token;
    row.expiresAt = this.#options.clock.now() + leaseMs;
    this.#renewed(this.#options.clock.now());
  }

  #renewed(askedAt: number): void {
    this.#ownedUntil = Math.max(this.#ownedUntil, askedAt + leaseMs * trusted);
  }

  #depose(): Error {
    this.#gone = deposed();
    return new Unavailable(this.#gone);
  }
}

export function away(why: string): Unavailable {
  return new Unavailable(new Error(why));
}
