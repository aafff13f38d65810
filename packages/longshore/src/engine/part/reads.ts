// Which parts of other tasks a task has finished with, as ranges of their numbers: a task that finishes them in order has one row, however
// many there are. Ranges never touch each other, so between two of them there is always a part that was left out.

import type { Task } from "../board/task.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Tx } from "../tx.ts";
import type { Database, SqlValue } from "../../store/sqlite/driver.ts";

export interface Finished {
  reader: Task;
  source: Task;
  uids: readonly string[];
  /** Called inside the transaction; null for an unknown uid. */
  sequenceOf(uid: string): number | null;
}

interface Stretch {
  first: number;
  last: number;
}

export class PartReads {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #finished: Additions<Finished>;

  constructor(db: Database, commit: GroupCommit) {
    this.#sql = prepareStatements(db);
    this.#finished = new Additions(commit, (finished) => this.#write(finished));
  }

  add(tx: Tx, finished: Finished): void {
    this.#finished.add(tx, finished);
  }

  /** The stretches after `after` that the reader has not finished with, in order; the last has no end. */
  *gaps(reader: Task, source: Task, after: number): Generator<{ after: number; upTo: number | null }, void> {
    const pair = pairOf(reader, source);
    const around = this.#sql.before(pair, after + 1);
    let from = Math.max(after, around?.last ?? 0);
    for (;;) {
      const next = this.#sql.after(pair, from);
      if (next === null) return yield { after: from, upTo: null };
      yield { after: from, upTo: next.first - 1 };
      from = next.last;
    }
  }

  #write({ reader, source, uids, sequenceOf }: Finished): void {
    const pair = pairOf(reader, source);
    const sequences = uids.map(sequenceOf).filter((sequence) => sequence !== null);
    for (const stretch of stretchesOf(sequences)) this.#merge(pair, stretch);
  }

  /** Makes one of it and of all that it touches. */
  #merge(pair: Pair, { first, last }: Stretch): void {
    for (;;) {
      const near = this.#sql.before(pair, last + 1);
      if (near === null || near.last < first - 1) break;
      if (near.first <= first && near.last >= last) return;
      this.#sql.remove(pair, near.first);
      first = Math.min(first, near.first);
      last = Math.max(last, near.last);
    }
    this.#sql.insert(pair, { first, last });
  }
}

/** Reader and source, each with the life that it is in. */
type Pair = readonly SqlValue[];

function pairOf(reader: Task, source: Task): Pair {
  return [reader.id, reader.firstAttempt, source.id, source.firstAttempt];
}

function stretchesOf(sequences: readonly number[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (const sequence of [...sequences].sort((one, other) => one - other)) {
    const newest = stretches.at(-1);
    if (newest !== undefined && sequence <= newest.last + 1) newest.last = sequence;
    else stretches.push({ first: sequence, last: sequence });
  }
  return stretches;
}

function prepareStatements(db: Database) {
  const ofPair = "reader = ? AND reader_life = ? AND source = ? AND source_life = ?";
  const before = db.prepare(`SELECT first, last FROM part_read WHERE ${ofPair} AND first <= ? ORDER BY first DESC LIMIT 1`);
  const after = db.prepare(`SELECT first, last FROM part_read WHERE ${ofPair} AND first > ? ORDER BY first LIMIT 1`);
  const insert = db.prepare("INSERT INTO part_read (reader, reader_life, source, source_life, first, last) VALUES (?, ?, ?, ?, ?, ?)");
  const remove = db.prepare(`DELETE FROM part_read WHERE ${ofPair} AND first = ?`);
  return {
    /** The stretch that begins there, or the nearest that begins before. */
    before: (pair: Pair, first: number) => (before.get(...pair, first) as unknown as Stretch | undefined) ?? null,
    after: (pair: Pair, sequence: number) => (after.get(...pair, sequence) as unknown as Stretch | undefined) ?? null,
    insert: (pair: Pair, { first, last }: Stretch) => insert.run(...pair, first, last),
    remove: (pair: Pair, first: number) => remove.run(...pair, first),
  };
}
