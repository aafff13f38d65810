// The embedded bus: topics and groups as rows. Which records each member holds is kept only in memory.

import type { BusRecord, Outgoing } from "../../core/bus/bus.ts";
import { bytesOf, checkOutgoing } from "../../core/bus/check.ts";
import {
  appendedMax,
  type BusLog,
  type Origin,
  recordMsMax,
  type Taken,
  type TakeOptions,
  takenBytesMax,
  topicRecordsMax,
} from "../../core/bus/log.ts";
import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { checkName } from "../../core/names.ts";
import { isQuotaReached } from "../../core/quotas.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import type { RowStore } from "../rows.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Range } from "./group-position.ts";
import { BusGroups, type Group } from "./groups.ts";
import { BusTopics, type Topic } from "./topics.ts";

export interface LocalBusDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  clock: Clock;
  stored: StoredBytes;
  /** For tests. */
  topicRecordsMax?: number;
}

interface Portion {
  readonly topic: Topic;
  readonly group: Group;
  readonly range: Range;
}

/** Maximum number of records that one operation removes; later operations remove the rest. */
const removedMax = 5_000;
/** Topics that are searched in one operation when there is no room. */
const searchedMax = 100;
/** How often a topic is searched for records that are too old. */
const ageLookMs = 60_000;

export class LocalBus implements BusLog {
  readonly #commit: GroupCommit;
  readonly #performed: Once;
  readonly #clock: Clock;
  readonly #topics: BusTopics;
  readonly #groups: BusGroups;
  readonly #recordsMax: number;
  readonly #room: Room;
  /**
   * What each member has taken and not committed: by member, then by the id of the take. The member comes first because thousands of
   * members may leave at once.
   */
  readonly #out = new Map<string, Map<number, readonly Portion[]>>();
  #releasesVisited = 0;
  readonly #watchers = new Map<string, Set<() => void>>();
  #takes = 0;
  /** Rotates the order of topics, so that none is always read last. */
  #turn = 0;

  constructor({ store, commit, performed = unmarked(commit), clock, stored, topicRecordsMax: recordsMax = topicRecordsMax }: LocalBusDeps) {
    this.#commit = commit;
    this.#performed = performed;
    this.#clock = clock;
    this.#recordsMax = recordsMax;
    this.#room = stored.of("bus");
    this.#topics = new BusTopics({ store, commit, room: this.#room });
    this.#groups = new BusGroups({ store, commit, clock });
  }

  /** Loads the stored state; must be called once, before anything else. */
  recover(): Promise<void> {
    return this.#groups.recover(this.#topics);
  }

  async append(records: readonly Outgoing[], by?: Origin): Promise<void> {
    checkOutgoing(records);
    if (records.length > appendedMax) throw tooMany(records.length);
    const byTopic = grouped(records);
    const bytes = records.reduce((sum, record) => sum + rowBytes + bytesOf(record), 0);
    const append = (tx: Tx) => {
      // A quota that workers have filled must not block the coordinator's own records.
      if (by === "guest") this.#room.take(tx, bytes);
      else this.#room.add(tx, bytes);
      const now = this.#clock.now();
      for (const [name, some] of byTopic) {
        const topic = this.#topics.open(tx, name, by);
        this.#topics.add(tx, topic, some, now);
        this.#removeForgotten(tx, topic, now);
      }
    };
    try {
      await this.#performed.once("append", append, () => undefined);
    } catch (error) {
      if (isQuotaReached(error)) await this.#removeOld();
      throw error;
    }
    for (const topic of byTopic.keys()) this.#wake(topic);
  }

  join(group: string, topics: readonly string[], from: "earliest" | "latest", by?: Origin): Promise<void> {
    checkName(group, "group");
    checkOutgoing(topics.map((topic) => ({ topic, key: null, value: "" })));
    return this.#commit.run((tx) => {
      for (const name of topics) this.#groups.join(tx, group, this.#topics.open(tx, name, by), from, by);
    });
  }

  take(options: TakeOptions): Promise<Taken | null> {
    return this.#commit.read((tx) => this.#takeNow(tx, options));
  }

  commit(member: string, taken: number): Promise<boolean> {
    const portions = this.#out.get(member)?.get(taken);
    if (portions === undefined) return Promise.resolve(false);
    return this.#commit.run((tx) => {
      if (this.#out.get(member)?.has(taken) !== true) return false;
      tx.after(() => this.#drop(member, taken));
      for (const { topic, group, range } of portions) {
        this.#groups.done(tx, group, range);
        this.#removePassed(tx, topic);
      }
      return true;
    });
  }

  release(member: string, taken?: number): void {
    const touched = new Set<string>();
    const own = this.#out.get(member);
    for (const id of taken === undefined ? [...(own?.keys() ?? [])] : [taken]) {
      this.#releasesVisited++;
      for (const { topic, group, range } of own?.get(id) ?? []) {
        group.place.giveBack(range);
        touched.add(topic.name);
      }
      this.#drop(member, id);
    }
    for (const topic of touched) this.#wake(topic);
  }

  /** How many takes were visited by releases. Tests read it: a release visits only the takes of its member. */
  get releasesVisited(): number {
    return this.#releasesVisited;
  }

  #drop(member: string, taken: number): void {
    const own = this.#out.get(member);
    own?.delete(taken);
    if (own?.size === 0) this.#out.delete(member);
  }

  watch(topics: readonly string[], wake: () => void): () => void {
    for (const topic of topics) {
      const watchers = this.#watchers.get(topic) ?? new Set();
      this.#watchers.set(topic, watchers.add(wake));
    }
    return () => {
      for (const topic of topics) {
        const watchers = this.#watchers.get(topic);
        watchers?.delete(wake);
        if (watchers?.size === 0) this.#watchers.delete(topic);
      }
    };
  }

  #takeNow(tx: ReadTx, options: TakeOptions): Taken | null {
    const portions: Portion[] = [];
    try {
      const records = this.#collect(tx, options, portions);
      if (portions.length === 0) return null;
      const id = ++this.#takes;
      const own = this.#out.get(options.member) ?? new Map<number, readonly Portion[]>();
      this.#out.set(options.member, own.set(id, portions));
      return { id, records };
    } catch (error) {
      // Rows may be missing: all ranges are taken again when the rows are loaded.
      for (const { group, range } of portions) group.place.giveBack(range);
      throw error;
    }
  }

  #collect(tx: ReadTx, { group, topics, max }: TakeOptions, portions: Portion[]): BusRecord[] {
    const records: BusRecord[] = [];
    let bytes = 0;
    this.#turn++;
    for (let at = 0; at < topics.length && records.length < max && bytes < takenBytesMax; at++) {
      const topic = this.#topics.find(topics[(at + this.#turn) % topics.length] as string);
      const found = topic === undefined ? undefined : this.#groups.find(group, topic);
      if (topic === undefined || found === undefined) continue;
      found.seenAt = this.#clock.now();
      while (records.length < max && bytes < takenBytesMax) {
        const range = found.place.take(topic.last, max - records.length);
        if (range === null) break;
        portions.push({ topic, group: found, range });
        const read = this.#topics.read(tx, topic, range, takenBytesMax - bytes);
        const last = read.end;
        if (last < range.last) {
          found.place.giveBack({ first: last + 1, last: range.last });
          portions[portions.length - 1] = { topic, group: found, range: { first: range.first, last } };
        }
        bytes += read.bytes;
        for (const record of read.records) records.push(record);
      }
    }
    return records;
  }

  #wake(topic: string): void {
    for (const wake of [...(this.#watchers.get(topic) ?? [])]) wake();
  }

  /** Removes records that every group has processed. A topic without a reader keeps its records until they are too old or too many. */
  #removePassed(tx: Tx, topic: Topic): void {
    const passed = this.#groups.passed(topic);
    if (passed !== null) this.#topics.remove(tx, topic, Math.min(passed, topic.first - 1 + removedMax));
  }

  /** Makes room: removes old records, also from topics that no producer appends to any more. */
  #removeOld(): Promise<void> {
    const topics = this.#topics.next(searchedMax);
    return this.#commit.run((tx) => {
      const now = this.#clock.now();
      for (const topic of topics) this.#removeForgotten(tx, topic, now);
    });
  }

  /** Removes records that are too old, or too many. */
  #removeForgotten(tx: Tx, topic: Topic, now: number): void {
    let upTo = topic.assigned - this.#recordsMax;
    const { lookedAt } = topic;
    if (now >= lookedAt + ageLookMs) {
      upTo = Math.max(upTo, this.#topics.lastBefore(tx, topic, now - recordMsMax, removedMax));
      topic.lookedAt = now;
      tx.undo(() => {
        topic.lookedAt = lookedAt;
      });
    }
    if (upTo < topic.first) return;
    this.#topics.remove(tx, topic, Math.min(upTo, topic.first - 1 + removedMax));
    tx.after(() => {
      // There may be more: the next operation searches again at once.
      topic.lookedAt = 0;
      this.#groups.skip(topic);
    });
  }
}

function grouped(records: readonly Outgoing[]): Map<string, Outgoing[]> {
  const byTopic = new Map<string, Outgoing[]>();
  for (const record of records) {
    const some = byTopic.get(record.topic);
    if (some === undefined) byTopic.set(record.topic, [record]);
    else some.push(record);
  }
  return byTopic;
}

function tooMany(count: number): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `${count} records were published at once, expected at most ${appendedMax}.`, {
    detail: { field: "records", expected: `at most ${appendedMax} records` },
  });
}
