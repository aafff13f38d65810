// Which server may write. The row of the shard names the owner by an epoch and a token, and counts its transactions. The first statement of
// each transaction is the fence. It fails when the row names another owner, and it locks the row until the commit. So a server that takes
// over waits for the transaction that is in progress and sees its result. From then on every transaction of the old owner fails.
//
// The same row shows the outcome of a commit whose response was lost. The owner reads the number of its last committed transaction on
// another connection. The same statement raises the counter. So a transaction that is still on its way on the old connection can never be
// carried out.
//
// The row has a lease, which ends when the owner does not renew it. The session of the owner has a lock, which ends with its connection. So
// a server that was killed is replaced at once, and a server that hangs is replaced when its lease has ended. Stored data never depends on
// clocks. Replies from memory do: the owner sends them only while it has the lock and, by its own steady clock, the lease.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { LongshoreError, toError } from "../../core/errors.ts";
import { Unavailable } from "../../engine/rows.ts";
import type { Lease } from "../../engine/store.ts";
import { deposed, inWords, isFenced, isLockTimeout, unavailable } from "./errors.ts";
import { type Call, type Link, Lost } from "./link.ts";
import type { Parameter, RawRow } from "./package.ts";
import type { Statements } from "./statements.ts";

export interface OwnerOptions {
  /** The connection for the transactions of the engine. */
  readonly write: Link;
  /** The connection whose session has the lock. */
  readonly lease: Link;
  readonly statements: Statements;
  readonly schema: string;
  /** The name of this server, for people. */
  readonly node: string;
  readonly leaseMs: number;
  /** Receives the time that PostgreSQL reported, and when this server requested it. */
  heard(timeMs: number, askedAt: number): void;
}

/** How long an owner that does not renew its lease keeps other servers out. */
export const leaseMsDefault = 5_000;
/** How often the lease is renewed during its term. Commits renew it as well. */
const renewals = 5;
/** The owner relies only on this share of its lease, because the clocks of two machines do not run equally fast. */
const trusted = 5 / 6;
/** How long the owner tries to find out the outcome of a commit. After that it gives the data up, because it does not know what is stored. */
const settleMsMax = 60_000;
const settlePauseMs = 100;
/** The pause between two tries to get the lock again. */
const lockPauseMs = 100;
/** How long PostgreSQL may take to end the session of an owner that hangs. It usually takes a millisecond. */
const endMsMax = 1_000;
const endPauseMs = 5;

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

export class Owner {
  readonly #options: OwnerOptions;
  readonly #leaseMs: number;
  readonly #epoch: number;
  /** The values that the row of the shard must have, as parameters of the fence. */
  readonly #identity: readonly Parameter[];
  #seq: number;
  /** Until this time of the steady clock, no other server can have taken over. */
  #ownedUntil: number;
  #gone: LongshoreError | null = null;
  #timer: NodeJS.Timeout | undefined;
  #renewing: Promise<void> = Promise.resolve();
  /** The session that has the lock, or had it last. */
  #lockedBy: string;
  #hasLock = true;
  #closed = false;
  /** True when a server has written to the data before. */
  readonly wasServed: boolean;

  /** Rejects with LONGSHORE_CONFLICT while another server has the data. */
  static async take(options: OwnerOptions): Promise<Owner> {
    const token = randomUUID();
    const statements = takingSql(options.schema);
    const lease = interval(options.leaseMs);
    for (const givesUpAt = performance.now() + endMsMax; ; await delay(endPauseMs)) {
      const askedAt = performance.now();
      const calls = statements.map((sql) => ({
        statement: options.statements.of(sql),
        values: sql.startsWith("UPDATE") ? [token, options.node, lease] : [],
      }));
      const found = await options.lease.run(calls).catch((error: unknown) => {
        // A transaction of the owner is in progress, and the owner's lease has not ended.
        throw isLockTimeout(error) ? conflict(options.schema, null) : error;
      });
      const [taken, [isLive, node] = []] = found.slice(-2).map((rows) => rows[0]);
      if (taken !== undefined) {
        const [epoch, seq, time, session] = taken.map(Number) as [number, number, number, number];
        options.heard(time, askedAt);
        return new Owner(options, { epoch, seq, token, session: String(session), takenAt: askedAt });
      }
      // The owner hangs and its lease has ended: its session, which has the lock, is about to end.
      if (isLive === "t" || performance.now() > givesUpAt) throw conflict(options.schema, node ?? null);
    }
  }

  private constructor(
    options: OwnerOptions,
    { epoch, seq, token, session, takenAt }: { epoch: number; seq: number; token: string; session: string; takenAt: number },
  ) {
    this.#options = options;
    this.#leaseMs = options.leaseMs;
    this.#epoch = epoch;
    this.#identity = [String(epoch), token];
    this.#seq = seq;
    this.#lockedBy = session;
    this.#ownedUntil = takenAt + this.#leaseMs * trusted;
    this.wasServed = epoch > 1;
    options.lease.onLost = () => {
      this.#hasLock = false;
      // Other servers see at once that the lock is free.
      this.#schedule(0);
    };
    this.#schedule();
  }

  /** Returns an error when another server owns the data, or when this server can no longer find out what was committed. */
  isGone(): LongshoreError | null {
    return this.#gone;
  }

  /** Without the lock, another server may have taken over already. */
  isOwned(): boolean {
    return this.#gone === null && this.#hasLock && performance.now() < this.#ownedUntil;
  }

  lease(): Lease {
    return { epoch: this.#epoch, msLeft: this.isOwned() ? this.#ownedUntil - performance.now() : 0 };
  }

  /** The number of the last transaction whose outcome is known. */
  version(): number {
    return this.#seq;
  }

  /** Reads the number of the last transaction that other statements at this moment see. */
  versionCall(): Call {
    return this.#call(`SELECT seq FROM shard WHERE ${mine}`, ...this.#identity);
  }

  /** The version that `versionCall` returned. Throws when another server owns the data. */
  versionOf(rows: readonly RawRow[]): number {
    const seq = rows[0]?.[0];
    if (seq === undefined || seq === null) throw this.#depose();
    return Number(seq);
  }

  /** Carries out statements in one transaction, all or none. */
  async commit(calls: readonly Call[]): Promise<void> {
    if (this.#gone !== null) throw this.#gone;
    const seq = this.#seq + 1;
    const askedAt = performance.now();
    try {
      await this.#options.write.run([this.#fence(seq), ...calls]);
      this.#seq = seq;
      this.#renewed(askedAt);
    } catch (error) {
      if (isFenced(error)) throw this.#depose();
      if (!(error instanceof Lost)) throw inWords(error);
      if (!(await this.#settle(seq))) throw unavailable(error);
    }
  }

  /** Gives the data up, so that another server can take over at once. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#renewing;
    // If PostgreSQL cannot be reached, the lease ends by itself.
    if (this.#gone === null)
      await this.#options.lease
        .run([this.#call(`UPDATE shard SET expires_at = now(), node = NULL WHERE ${mine}`, ...this.#identity)])
        .catch(() => {});
  }

  #fence(seq: number): Call {
    const renewed = `UPDATE shard SET seq = ?, expires_at = now() + ?::interval WHERE ${mine} AND seq = ? RETURNING 1`;
    return this.#call(
      `WITH renewed AS (${renewed}) SELECT 1 / count(*) FROM renewed`,
      ...[String(seq), interval(this.#leaseMs), ...this.#identity, String(seq - 1)],
    );
  }

  /** Whether the transaction `seq`, whose response was lost, was committed. Sets the counter to `seq + 2` if it was, and to `seq + 1` if it was not. */
  async #settle(seq: number): Promise<boolean> {
    const moved = `CASE seq WHEN ${"?"}::bigint THEN ?::bigint WHEN ?::bigint THEN ?::bigint ELSE seq END`;
    const values = [seq - 1, seq + 1, seq, seq + 2].map(String);
    const call = this.#call(`UPDATE shard SET seq = ${moved} WHERE ${mine} RETURNING seq`, ...values, ...this.#identity);
    const givesUpAt = performance.now() + settleMsMax;
    for (;;) {
      try {
        const [rows = []] = await this.#options.write.run([call]);
        const found = rows[0]?.[0];
        if (found === undefined) throw this.#depose();
        this.#seq = Number(found);
        return this.#seq === seq + 2;
      } catch (error) {
        if (this.#gone !== null) throw error;
        if (this.#closed || performance.now() > givesUpAt) throw this.#lose(error);
        await delay(settlePauseMs, undefined, { ref: false });
      }
    }
  }

  #schedule(afterMs = this.#leaseMs / renewals): void {
    clearTimeout(this.#timer);
    if (this.#closed || this.#gone !== null) return;
    this.#timer = setTimeout(() => {
      this.#renewing = this.#renewing.then(() => this.#renew()).then(() => this.#schedule(this.#hasLock ? undefined : lockPauseMs));
    }, afterMs);
    this.#timer.unref();
  }

  /** Renews the lease and reads the time of PostgreSQL. A renewal that fails is tried again until the row names another owner. */
  async #renew(): Promise<void> {
    const renewed = `UPDATE shard SET expires_at = now() + ?::interval WHERE ${mine} RETURNING ${now}`;
    try {
      const askedAt = performance.now();
      // The row is read after the lock is taken, because another server may have had the lock in between.
      const locking = this.#hasLock ? [] : this.#locking();
      const found = await this.#options.lease.run([...locking, this.#call(renewed, interval(this.#leaseMs), ...this.#identity)]);
      const time = found.at(-1)?.[0]?.[0];
      if (time === undefined) return void this.#depose();
      this.#options.heard(Number(time), askedAt);
      this.#renewed(askedAt);
      if (locking.length > 0) this.#locked(found.at(-2)?.[0] ?? []);
    } catch {
      // The next renewal finds out the reason.
    }
  }

  /** Takes the lock again. PostgreSQL may not have noticed that the session with the lock was lost, so that session is ended first. */
  #locking(): Call[] {
    const lock = lockOf(this.#options.schema);
    const ended = `SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE ${holding(lock)} AND pid = ?::int`;
    return [this.#call(ended, this.#lockedBy), this.#call(lockSql(lock))];
  }

  #locked([isLocked, session]: RawRow): void {
    if (isLocked !== "t") return;
    this.#hasLock = true;
    this.#lockedBy = String(session);
  }

  /** PostgreSQL counts the lease from a moment after the request was sent, so the lease lasts at least this long. */
  #renewed(askedAt: number): void {
    this.#ownedUntil = Math.max(this.#ownedUntil, askedAt + this.#leaseMs * trusted);
  }

  #depose(): Error {
    this.#gone = deposed();
    return new Unavailable(this.#gone);
  }

  #lose(cause: unknown): Error {
    const message = `PostgreSQL did not report for ${settleMsMax / 1_000} s whether it has committed a transaction: ${toError(cause).message}. Start this server again.`;
    this.#gone = new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", message, { cause });
    return new Unavailable(this.#gone);
  }

  #call(sql: string, ...values: Parameter[]): Call {
    return { statement: this.#options.statements.of(sql), values };
  }
}

const mine = "id = 0 AND epoch = ? AND token = ?::uuid";

export function lockOf(schema: string): string {
  return `hashtext('longshore'), hashtext('${schema}/0')`;
}

/** The sessions that have a lock with these two numbers. Other databases of the same PostgreSQL may have locks with the same numbers. */
export function holding(lock: string): string {
  const [first, second] = lock.split(", ");
  const numbers = `classid::bigint = ${first} & 4294967295 AND objid::bigint = ${second} & 4294967295`;
  return `locktype = 'advisory' AND objsubid = 2 AND ${numbers} AND granted AND ${inThisDatabase}`;
}

const inThisDatabase = "database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/**
 * The take-over is one transaction: when several servers try, one completes it before the next begins. An owner whose lease has ended does
 * not respond any more. So its session with the lock is ended, and any session of it that is stuck in a transaction. The last two
 * statements return the new row, if the lock was free, and the owner of the data.
 */
function takingSql(schema: string): string[] {
  const lock = lockOf(schema);
  const isOver = "EXISTS (SELECT 1 FROM shard WHERE id = 0 AND expires_at <= now())";
  const writing = `relation = 'shard'::regclass AND mode = 'RowExclusiveLock' AND ${inThisDatabase}`;
  const sessions = `SELECT DISTINCT pid FROM pg_locks WHERE ((${holding(lock)}) OR (${writing})) AND pid <> pg_backend_pid() AND ${isOver}`;
  const isMine = `EXISTS (SELECT 1 FROM pg_locks WHERE ${holding(lock)} AND pid = pg_backend_pid())`;
  return [
    `SELECT pg_advisory_xact_lock(hashtext('longshore'), hashtext('${schema}/taking'))`,
    `SELECT count(pg_terminate_backend(pid)) FROM (${sessions}) AS ended`,
    lockSql(lock),
    `UPDATE shard SET epoch = epoch + 1, token = ?::uuid, node = ?, expires_at = now() + ?::interval WHERE id = 0 AND ${isMine} RETURNING epoch, seq, ${now}, pg_backend_pid()`,
    "SELECT expires_at > now(), node FROM shard WHERE id = 0",
  ];
}

/** Returns whether the lock was free, and which session requested it. */
function lockSql(lock: string): string {
  return `SELECT pg_try_advisory_lock(${lock}), pg_backend_pid()`;
}

function interval(ms: number): string {
  return `${ms} milliseconds`;
}

function conflict(schema: string, node: string | null): LongshoreError {
  const who = node === null ? "Another Longshore server" : `Another Longshore server (${node})`;
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `${who} is using the schema ${schema} of this database: stop it first, or choose another schema with ?schema=NAME.`,
  );
}
