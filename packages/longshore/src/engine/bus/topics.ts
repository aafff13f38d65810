// Topics of the embedded bus and their records as rows.

import type { BusRecord, Outgoing } from "../../core/bus/bus.ts";
import { guestTopicsMax, type Origin, topicsMax } from "../../core/bus/log.ts";
import { LongshoreError } from "../../core/errors.ts";
import { Additions, eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, Scan, TableRows } from "../rows.ts";
import { type Room, rowBytes } from "../stored-bytes.ts";
import { type RecordHead, type RecordRow, recordHeadTable, recordTable, type TopicRow, topicTable } from "../tables/bus.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Range } from "./group-position.ts";

export interface Topic {
  readonly id: number;
  readonly name: string;
  /** The number of the oldest record that is kept; one more than `last` when there is none. */
  first: number;
  /** The number of the newest record that is durable. */
  last: number;
  /** The last assigned number; the commit of its record may not have happened yet. */
  assigned: number;
  /** When it was last searched for old records. */
  lookedAt: number;
}

/**
 * How many record numbers one topic has. At a million records a second they last twelve days; at a thousand a second, 34 years. Topic and
 * number together fit into a double exactly.
 */
const numbers = 2 ** 40;

/** Maximum bytes of records that one operation removes from a topic: SQLite visits all pages that it frees. */
const removedBytesMax = 4 * 1_048_576;

export class BusTopics {
  readonly #byName = new Map<string, Topic>();
  readonly #byId = new Map<number, Topic>();
  #turn = 0;
  readonly #commit: GroupCommit;
  readonly #room: Room;
  readonly #topics: TableRows<TopicRow>;
  readonly #rows: TableRows<RecordRow>;
  readonly #heads: TableRows<RecordHead>;
  readonly #created: Additions<TopicRow>;
  readonly #records: Additions<readonly RecordRow[]>;
  readonly #removals: Additions<Range>;

  constructor({ store, commit, room }: { store: RowStore; commit: GroupCommit; room: Room }) {
    this.#commit = commit;
    this.#room = room;
    this.#topics = store.table(topicTable);
    this.#rows = store.table(recordTable);
    this.#heads = store.table(recordHeadTable);
    this.#created = new Additions(commit, (topic) => this.#topics.insert([topic]));
    this.#records = new Additions(
      commit,
      (records) => this.#rows.insert(records),
      (records) => records.reduce((bytes, { value }) => bytes + value.length, 0),
    );
    this.#removals = new Additions(commit, (range) => this.#rows.remove(scanOf(range)));
  }

  /** Loads the stored topics. `passed` returns the progress of a topic's groups. This is known even when all records were removed. */
  async recover(passed: (topicId: number) => number): Promise<void> {
    const at = ({ id }: TopicRow) => [id];
    const topics: TopicRow[] = [];
    await eachRow(this.#commit, this.#topics, { by: ["id"] }, { at, take: (topic) => topics.push(topic) });
    for (const topic of topics) {
      const start = idOf(topic, 0);
      const all = scanOf({ first: start + 1, last: start + numbers - 1 });
      const [oldest] = await this.#commit.read((tx) => [...this.#heads.scan(tx, { ...all, limit: 1 })]);
      const [newest] = await this.#commit.read((tx) => [...this.#heads.scan(tx, { ...all, limit: 1, backwards: true })]);
      const last = Math.max(passed(topic.id), newest === undefined ? 0 : newest.id - start);
      const first = oldest === undefined ? last + 1 : oldest.id - start;
      this.#keep({ ...topic, first, last, assigned: last, lookedAt: 0 });
    }
  }

  find(name: string): Topic | undefined {
    return this.#byName.get(name);
  }

  byId(id: number): Topic | undefined {
    return this.#byId.get(id);
  }

  /** Returns some topics, different ones with each call. */
  next(count: number): Topic[] {
    const topics: Topic[] = [];
    for (let at = 0; at < Math.min(count, this.#byId.size); at++) {
      this.#turn = (this.#turn % this.#byId.size) + 1;
      const topic = this.#byId.get(this.#turn);
      if (topic !== undefined) topics.push(topic);
    }
    return topics;
  }

  /** Finds the topic, or creates it. */
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
    const start = idOf(topic, before + 1);
    this.#records.add(
      tx,
      records.map(({ key, value }, place) => ({
        id: start + place,
        key,
        at,
        value: typeof value === "string" ? Buffer.from(value) : value,
      })),
    );
  }

  /** Reads the records of a range, up to `bytesMax` but at least one; `end` is the last number that was visited. */
  read(tx: ReadTx, topic: Topic, range: Range, bytesMax: number): { records: BusRecord[]; bytes: number; end: number } {
    const records: BusRecord[] = [];
    let bytes = 0;
    for (const { id, key, at, value } of this.#rows.scan(tx, {
      ...scanOf(idsOf(topic, range)),
      enough: { chars: bytesMax + 1, of: ["value"] },
    })) {
      const number = id - idOf(topic, 0);
      bytes += value.byteLength;
      if (bytes > bytesMax && records.length > 0) return { records, bytes, end: number - 1 };
      records.push({ topic: topic.name, key, value, place: `${topic.name}@${number}`, at });
    }
    return { records, bytes, end: range.last };
  }

  /**
   * Removes records up to a number, or fewer when they are large: later operations remove the rest. Records that are not yet committed
   * stay.
   */
  remove(tx: Tx, topic: Topic, upTo: number): void {
    const { first } = topic;
    const range = idsOf(topic, { first, last: Math.min(upTo, topic.last) });
    if (range.last < range.first) return;
    let bytes = this.#bytesOf(tx, range);
    let { last } = range;
    if (bytes > removedBytesMax) {
      last = this.#lastWithin(tx, range);
      bytes = this.#bytesOf(tx, { first: range.first, last });
    }
    this.#room.add(tx, -bytes);
    this.#removals.add(tx, { first: range.first, last });
    topic.first = last - idOf(topic, 0) + 1;
    tx.undo(() => {
      topic.first = first;
    });
  }

  /** Among the oldest `count` records, returns the number of the last one from before `at`; 0 when there is none. */
  lastBefore(tx: Tx, topic: Topic, at: number, count: number): number {
    const range = { first: topic.first, last: Math.min(topic.last, topic.first + count - 1) };
    let last = 0;
    if (range.last < range.first) return last;
    for (const record of this.#heads.scan(tx, scanOf(idsOf(topic, range)))) {
      if (record.at >= at) break;
      last = record.id - idOf(topic, 0);
    }
    return last;
  }

  /** The bytes that count against the quota. */
  #bytesOf(tx: Tx, range: Range): number {
    const { rows, sum } = this.#heads.total(tx, scanOf(range), "bytes");
    return sum + rowBytes * rows;
  }

  /** The last id of the range up to which its records together stay below `removedBytesMax`. The first record is always included. */
  #lastWithin(tx: Tx, range: Range): number {
    let sum = 0;
    for (const { id, bytes } of this.#heads.scan(tx, scanOf(range))) {
      sum += bytes;
      if (sum > removedBytesMax) return Math.max(range.first, id - 1);
    }
    return range.last;
  }

  #keep(topic: Topic): void {
    this.#byName.set(topic.name, topic);
    this.#byId.set(topic.id, topic);
  }
}

function idOf(topic: { readonly id: number }, number: number): number {
  return topic.id * numbers + number;
}

function idsOf(topic: Topic, { first, last }: Range): Range {
  return { first: idOf(topic, first), last: idOf(topic, last) };
}

/** A scan over a range of ids. */
function scanOf({ first, last }: Range): Scan {
  return { by: ["id"], above: [first - 1], below: [last + 1] };
}

function tooManyTopics(name: string, max: number): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `The topic ${name} cannot be added: there may be at most ${max} topics.`, {
    detail: { field: "topic", expected: `at most ${max} topics` },
  });
}
