// Topics of the embedded bus and their records as rows.

import type { BusRecord, Outgoing } from "../../bus/bus.ts";
import { guestTopicsMax, type Origin, topicsMax } from "../../bus/log.ts";
import type { Range } from "../../bus/group-position.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Room, rowBytes } from "../stored-bytes.ts";
import type { Tx } from "../tx.ts";
import { LongshoreError } from "../../errors.ts";
import type { Database } from "../../store/sqlite/driver.ts";

export interface Topic {
  readonly id: number;
  readonly name: string;
  /** The number of the oldest record that is kept; one more than `last` when there is none. */
  first: number;
  /** The number of the newest record that is durable. */
  last: number;
  /** The number that was given out last, in operations whose commit may still be ahead. */
  assigned: number;
  /** When it was last searched for old records. */
  lookedAt: number;
}

interface NewRecords {
  readonly start: number;
  readonly records: readonly Outgoing[];
  readonly at: number;
}

/** Numbers of one topic: at a million records a second it lasts twelve days, at a thousand 34 years. Topic and number fit an exact double. */
const numbers = 2 ** 40;

/** Bytes of the records that one operation removes from a topic: SQLite walks all pages that it frees. */
const removedBytesMax = 4 * 1_048_576;

export class BusTopics {
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<number, Topic>();
  #turn = 0;
  readonly #created: Additions<Topic>;
  readonly #records: Additions<NewRecords>;
  readonly #removals: Additions<Range>;
  readonly #bytes: (range: Range) => number;
  readonly #sizes: (range: Range) => Iterable<{ [column: string]: unknown }>;
  readonly #rows: (first: number, last: number) => Iterable<{ [column: string]: unknown }>;
  readonly #older: (first: number, last: number, at: number) => number | null;

  constructor(db: Database, commit: GroupCommit, room: Room) {
    const createTopic = db.prepare("INSERT INTO bus_topic (id, name) VALUES (?, ?)");
    this.#created = new Additions(commit, (topic) => createTopic.run(topic.id, topic.name));
    const insert = db.prepare("INSERT INTO bus_record (id, key, value, at) VALUES (?, ?, ?, ?)");
    this.#records = new Additions(
      commit,
      ({ start, records, at }) => {
        let id = start;
        // As bytes: one of the drivers cuts texts at a NUL.
        for (const { key, value } of records) insert.run(id++, key, typeof value === "string" ? Buffer.from(value) : value, at);
      },
      ({ records }) => records.reduce((chars, { value }) => chars + value.length, 0),
    );
    const bytes = db.prepare(
      `SELECT total(${rowBytes} + coalesce(octet_length(key), 0) + octet_length(value)) AS bytes FROM bus_record WHERE id BETWEEN ? AND ?`,
    );
    const remove = db.prepare("DELETE FROM bus_record WHERE id BETWEEN ? AND ?");
    this.#bytes = ({ first, last }) => Number(bytes.get(first, last)?.bytes);
    this.#removals = new Additions(commit, (range, tx) => {
      room.addNow(tx, -this.#bytes(range));
      remove.run(range.first, range.last);
    });
    const sizes = db.prepare("SELECT id, octet_length(value) AS bytes FROM bus_record WHERE id BETWEEN ? AND ? ORDER BY id");
    this.#sizes = ({ first, last }) => sizes.iterate(first, last);
    const rows = db.prepare("SELECT id, key, value, at FROM bus_record WHERE id BETWEEN ? AND ? ORDER BY id");
    this.#rows = (first, last) => rows.iterate(first, last);
    const older = db.prepare(
      "SELECT max(id) AS id FROM (SELECT id, at FROM bus_record WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?) WHERE at < ?",
    );
    this.#older = (first, last, at) => (older.get(first, last, last - first + 1, at)?.id as number | null) ?? null;
    this.#load(db);
  }

  find(name: string): Topic | undefined {
    return this.#byName.get(name);
  }

  byId(id: number): Topic | undefined {
    return this.#byId.get(id);
  }

  /** Some topics, others with each call. */
  next(count: number): Topic[] {
    const topics: Topic[] = [];
    for (let at = 0; at < Math.min(count, this.#byId.size); at++) {
      this.#turn = (this.#turn % this.#byId.size) + 1;
      const topic = this.#byId.get(this.#turn);
      if (topic !== undefined) topics.push(topic);
    }
    return topics;
  }

  /** Finds it, or makes it. */
  open(tx: Tx, name: string, by: Origin = "own"): Topic {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const max = by === "guest" ? guestTopicsMax : topicsMax;
    if (this.#byId.size >= max) throw tooManyTopics(name, max);
    const topic: Topic = { id: this.#byId.size + 1, name, first: 1, last: 0, assigned: 0, lookedAt: 0 };
    this.#keep(topic);
    tx.undo(() => {
      this.#byName.delete(name);
      this.#byId.delete(topic.id);
    });
    this.#created.add(tx, topic);
    return topic;
  }

  add(tx: Tx, topic: Topic, records: readonly Outgoing[], at: number): void {
    const before = topic.assigned;
    topic.assigned += records.length;
    const { assigned } = topic;
    tx.undo(() => {
      topic.assigned = before;
    });
    tx.after(() => {
      topic.last = assigned;
    });
    this.#records.add(tx, { start: idOf(topic, before + 1), records, at });
  }

  /** Records of a range, up to `bytesMax` but at least one; `end` is the last number that was looked at. */
  read(topic: Topic, range: Range, bytesMax: number): { records: BusRecord[]; bytes: number; end: number } {
    const records: BusRecord[] = [];
    let bytes = 0;
    for (const row of this.#rows(idOf(topic, range.first), idOf(topic, range.last))) {
      const value = row.value as Uint8Array;
      const number = (row.id as number) - idOf(topic, 0);
      bytes += value.byteLength;
      if (bytes > bytesMax && records.length > 0) return { records, bytes, end: number - 1 };
      records.push({ topic: topic.name, key: row.key as string | null, value, place: `${topic.name}@${number}`, at: row.at as number });
    }
    return { records, bytes, end: range.last };
  }

  /** Removes what is kept up to a number, and less where that is long: later operations remove the rest. */
  remove(tx: Tx, topic: Topic, upTo: number): void {
    if (upTo < topic.first) return;
    const { first } = topic;
    const range = { first: idOf(topic, first), last: idOf(topic, upTo) };
    const last = this.#bytes(range) <= removedBytesMax ? range.last : this.#lastWithin(range);
    this.#removals.add(tx, { first: range.first, last });
    topic.first = last - idOf(topic, 0) + 1;
    tx.undo(() => {
      topic.first = first;
    });
  }

  /** The last id up to which the records of a range have few bytes; the first record at least. */
  #lastWithin(range: Range): number {
    let bytes = 0;
    for (const row of this.#sizes(range)) {
      bytes += row.bytes as number;
      if (bytes > removedBytesMax) return Math.max(range.first, (row.id as number) - 1);
    }
    return range.last;
  }

  /** The number of the last record from before `at` among the oldest `count`; 0 when there is none. */
  lastBefore(topic: Topic, at: number, count: number): number {
    const last = Math.min(topic.last, topic.first + count - 1);
    if (last < topic.first) return 0;
    const id = this.#older(idOf(topic, topic.first), idOf(topic, last), at);
    return id === null ? 0 : id - idOf(topic, 0);
  }

  #load(db: Database): void {
    const ends = db.prepare("SELECT min(id) AS first, max(id) AS last FROM bus_record WHERE id BETWEEN ? AND ?");
    const passed = db.prepare("SELECT max(position) AS position FROM bus_group WHERE topic = ?");
    for (const row of db.prepare("SELECT id, name FROM bus_topic").all()) {
      const base = { id: row.id as number, name: row.name as string };
      const start = idOf(base, 0);
      const kept = ends.get(start + 1, start + numbers - 1);
      // When all was removed, the groups still have the last number.
      const known = Number(passed.get(base.id)?.position ?? 0);
      const last = kept?.last == null ? known : Math.max(known, (kept.last as number) - start);
      const first = kept?.first == null ? last + 1 : (kept.first as number) - start;
      this.#keep({ ...base, first, last, assigned: last, lookedAt: 0 });
    }
  }

  #keep(topic: Topic): void {
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.id, topic);
  }
}

function idOf(topic: { readonly id: number }, number: number): number {
  return topic.id * numbers + number;
}

function tooManyTopics(name: string, max: number): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `The topic ${name} would be one of more than ${max}, which is the limit.`, {
    detail: { field: "topic", expected: `at most ${max} topics` },
  });
}
