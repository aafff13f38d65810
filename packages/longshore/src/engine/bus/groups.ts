// Groups of the embedded bus as rows: the progress of each group in each of its topics.

import { groupIdleMs, groupMsMax, groupsMax, type Origin } from "../../core/bus/log.ts";
import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { eachRow, Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { type GroupRow, groupTable } from "../tables/bus.ts";
import type { Tx } from "../tx.ts";
import { GroupPosition, type Range } from "./group-position.ts";
import type { BusTopics, Topic } from "./topics.ts";

export interface Group {
  readonly name: string;
  readonly topic: Topic;
  readonly place: GroupPosition;
  /** When one of its members was last active. */
  seenAt: number;
}

/** How often idle groups are searched for. At the maximum number of groups, each search blocks the event loop for some milliseconds. */
const lookMs = 60_000;

export class BusGroups {
  readonly #clock: Clock;
  readonly #commit: GroupCommit;
  readonly #rows: Rows<Group>;
  readonly #stored: TableRows<GroupRow>;
  readonly #byTopic = new Map<Topic, Map<string, Group>>();
  #count = 0;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor({ store, commit, clock }: { store: RowStore; commit: GroupCommit; clock: Clock }) {
    this.#clock = clock;
    this.#commit = commit;
    const stored = store.table(groupTable);
    this.#stored = stored;
    this.#rows = new Rows<Group>(commit, {
      // All groups are in memory; rows are only written.
      load: () => null,
      save: ({ name, topic, place: { position, done }, seenAt }) =>
        stored.write({ topic: topic.id, name, position, done: done.map(({ first, last }) => [first, last] as const), seenAt }),
      remove(key) {
        const at = key.indexOf(" ");
        stored.remove([Number(key.slice(0, at)), key.slice(at + 1)]);
      },
      keep: () => "no",
      keptMax: 0,
    });
  }

  /** Loads the stored groups and topics. */
  async recover(topics: BusTopics): Promise<void> {
    const stored: GroupRow[] = [];
    const passed = new Map<number, number>();
    await eachRow(
      this.#commit,
      this.#stored,
      { by: ["topic", "name"] },
      {
        at: ({ topic, name }) => [topic, name],
        take: (row) => {
          stored.push(row);
          passed.set(row.topic, Math.max(row.position, passed.get(row.topic) ?? 0));
        },
      },
    );
    await topics.recover((topicId) => passed.get(topicId) ?? 0);
    for (const row of stored) {
      const topic = topics.byId(row.topic);
      if (topic === undefined) continue;
      const done = row.done.map(([first, last]) => ({ first, last }));
      const group = { name: row.name, topic, place: new GroupPosition(row.position, done), seenAt: row.seenAt };
      group.place.skipTo(topic.first);
      this.#keep(group);
    }
  }

  find(name: string, topic: Topic): Group | undefined {
    return this.#byTopic.get(topic)?.get(name);
  }

  join(tx: Tx, name: string, topic: Topic, from: "earliest" | "latest", by: Origin = "own"): void {
    this.#forgetIdle(tx);
    const known = this.find(name, topic);
    const position = from === "latest" ? topic.assigned : topic.first - 1;
    const group = known ?? { name, topic, place: new GroupPosition(position, []), seenAt: 0 };
    if (known === undefined) {
      if (by === "guest" && this.#count >= groupsMax) throw tooManyGroups(name);
      this.#keep(group);
      tx.undo(() => this.#drop(group));
    }
    this.#save(tx, group);
  }

  done(tx: Tx, group: Group, range: Range): void {
    const { place } = group;
    const { position, done } = place;
    Object.assign(place, place.after(range));
    tx.undo(() => Object.assign(place, { position, done }));
    this.#save(tx, group);
  }

  /** The number up to which every group has processed the topic; null when there is no group. */
  passed(topic: Topic): number | null {
    let least: number | null = null;
    for (const { place } of this.#byTopic.get(topic)?.values() ?? []) least = Math.min(least ?? place.position, place.position);
    return least;
  }

  /** Moves the groups of a topic past removed records. */
  skip(topic: Topic): void {
    for (const { place } of this.#byTopic.get(topic)?.values() ?? []) place.skipTo(topic.first);
  }

  /** Removes groups that no member has used for some time. When the number of groups is at its maximum, this time is shorter. */
  #forgetIdle(tx: Tx): void {
    const now = this.#clock.now();
    const before = this.#lookedAt;
    if (now < before + lookMs) return;
    this.#lookedAt = now;
    tx.undo(() => {
      this.#lookedAt = before;
    });
    const idleSince = now - (this.#count >= groupsMax ? groupIdleMs : groupMsMax);
    for (const groups of this.#byTopic.values()) {
      for (const group of groups.values()) {
        if (group.seenAt >= idleSince) continue;
        this.#drop(group);
        tx.undo(() => this.#keep(group));
        this.#rows.remove(tx, keyOf(group));
      }
    }
  }

  #save(tx: Tx, group: Group): void {
    group.seenAt = this.#clock.now();
    this.#rows.put(tx, keyOf(group), group, true);
  }

  #keep(group: Group): void {
    const groups = this.#byTopic.get(group.topic) ?? new Map<string, Group>();
    this.#byTopic.set(group.topic, groups.set(group.name, group));
    this.#count++;
  }

  #drop({ topic, name }: Group): void {
    if (this.#byTopic.get(topic)?.delete(name)) this.#count--;
  }
}

/** The id of the topic comes first. It is a number without a space, so the first space of a key ends it. */
function keyOf({ topic, name }: Group): string {
  return `${topic.id} ${name}`;
}

function tooManyGroups(name: string): LongshoreError {
  const message = `The group ${name} cannot be added: there may be at most ${groupsMax} groups on the bus, counted once for each of their topics. Use fewer groups, or wait: a group that was silent for an hour is removed.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { detail: { field: "group", expected: `at most ${groupsMax} groups` } });
}
