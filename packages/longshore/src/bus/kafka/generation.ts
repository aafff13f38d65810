// The state of a member between two rebalances: its partitions with their read positions, the records that are fetched but not delivered,
// and the records that are handled but not committed.

import type { ConnectionPool, Consumer } from "@platformatic/kafka";
import type { BusRecord } from "../../core/bus/bus.ts";
import type { Assignment } from "../../net/kafka/assignment.ts";
import { Latch } from "../latch.ts";
import { isStale, named, requestMsMax, within } from "./client.ts";
import type { FetchAnswer } from "./fetch.ts";
import { rebalanceMs } from "./membership.ts";
import { type Fetched, fetchedOf } from "./records.ts";
import type { Unpack } from "./unpack.ts";

type Metadata = Awaited<ReturnType<Consumer["metadata"]>>;

export interface GenerationDeps {
  readonly client: Consumer;
  /** Fetches wait at the broker, so they have separate connections. `fetch.ts` parses their responses. */
  readonly fetching: ConnectionPool;
  readonly assignment: Assignment;
  readonly from: "earliest" | "latest";
  /** For each topic, the index of its first new partition: all records in new partitions have arrived since the group began. */
  readonly added: { readonly [topic: string]: number };
  /** When it aborts, all waiting ends. */
  readonly late: AbortSignal;
  readonly unpack: Unpack;
  /** Called for a batch that cannot be read and is skipped; `place` is where it begins. */
  unreadable(place: string, reason: string): void;
  /** Called when a partition is not read any further: a batch in it waits for a process that can unpack it. */
  waits(place: string, reason: string): void;
  /** Called when there may be records to take. */
  wake(): void;
}

interface Partition {
  readonly topic: string;
  readonly index: number;
  /** The offset of the next fetch. */
  position: bigint;
  /** All records before this offset are handled. */
  done: bigint;
  committed: bigint;
  /** True when the partition is not read any further. */
  waits: boolean;
}

/** How long a broker waits with an empty response; this also bounds how long the end of a generation takes. */
const fetchWaitMs = 500;
const fetchBytesMax = 4 * 1024 * 1024;
const partitionBytesMax = 1024 * 1024;
/** The limit of bytes that are fetched ahead; one more fetch may add `fetchBytesMax`. */
const aheadBytesMax = 8 * 1024 * 1024;
/** The delay before a fetch with a transient failure is repeated. */
const staleMs = 100;
/**
 * All tries together take three seconds. A broker elects leaders of new partitions within one second; if it does not, the waiting caller
 * must be informed.
 */
const staleTries = 30;

export class Generation {
  readonly #deps: GenerationDeps;
  readonly #end = new AbortController();
  readonly #partitions: Partition[];
  readonly #byPlace = new Map<string, Partition>();
  readonly #room = new Latch();
  #ahead: Fetched[] = [];
  #aheadBytes = 0;
  /** The records that were delivered last. */
  #out: Fetched[] = [];
  #committing: Promise<void> | null = null;
  #failure: unknown;

  constructor(deps: GenerationDeps) {
    this.#deps = deps;
    this.#partitions = [...deps.assignment].flatMap(([topic, indices]) =>
      indices.map((index) => ({ topic, index, position: 0n, done: 0n, committed: -1n, waits: false })),
    );
    for (const partition of this.#partitions) this.#byPlace.set(placeOf(partition.topic, partition.index), partition);
  }

  get over(): AbortSignal {
    return this.#end.signal;
  }

  end(): void {
    this.#end.abort();
    this.#room.open();
    this.#deps.wake();
  }

  /** Finds the read positions and commits them: the group must get later records even when this member ends. */
  async begin(): Promise<void> {
    if (this.#partitions.length === 0) return;
    const { client, from, added } = this.#deps;
    const topics = [...this.#deps.assignment].map(([topic, partitions]) => ({ topic, partitions: [...partitions] }));
    const committed = await this.#soon(client.listCommittedOffsets({ topics }));
    const fresh: Partition[] = [];
    for (const partition of this.#partitions) {
      const known = committed.get(partition.topic)?.[partition.index] ?? -1n;
      if (known >= 0n) Object.assign(partition, { position: known, done: known, committed: known });
      else fresh.push(partition);
    }
    const isAdded = ({ topic, index }: Partition) => index >= (added[topic] ?? Number.POSITIVE_INFINITY);
    await this.#reset(
      fresh.filter((partition) => !isAdded(partition)),
      from,
    );
    await this.#reset(fresh.filter(isAdded), "earliest");
    if (fresh.length > 0) await this.#commit();
  }

  /** The next records, from as many partitions as needed; null when nothing has been fetched. */
  take(max: number): readonly BusRecord[] | null {
    const [first] = this.#ahead;
    if (first === undefined) return null;
    this.#out = [];
    const records: BusRecord[] = [];
    while (this.#ahead.length > 0 && records.length < max) {
      const fetched = this.#ahead[0] as Fetched;
      const batch = fetched.split(max - records.length);
      if (batch === fetched) this.#ahead.shift();
      for (const record of batch.records) records.push(record);
      this.#out.push(batch);
      this.#aheadBytes -= batch.bytes;
    }
    this.#room.open();
    return records;
  }

  /** Marks the last delivered records as handled; they are committed while the next ones are handled. */
  done(): void {
    for (const { topic, index, next } of this.#out) {
      const partition = this.#byPlace.get(placeOf(topic, index));
      if (partition !== undefined) partition.done = next;
    }
    this.#out = [];
    this.#committing ??= this.#commitAll();
  }

  /** Resolves when everything that was handled is committed. Throws when that failed. */
  async committed(): Promise<void> {
    while (this.#committing !== null) await this.#committing;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits for a call. After the end of the generation it waits only as long as the other members wait for us. */
  async patiently(call: Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    let late: (() => void) | undefined;
    const tooLate = new Promise<never>((_resolve, reject) => {
      late = () => {
        timer = setTimeout(() => reject(new Error("the wait for the group has taken too long")), rebalanceMs / 2);
      };
      if (this.over.aborted) late();
      else this.over.addEventListener("abort", late, { once: true });
    });
    try {
      await Promise.race([call, tooLate]);
    } finally {
      clearTimeout(timer);
      if (late !== undefined) this.over.removeEventListener("abort", late);
    }
  }

  /** Fetches while there is room: one fetch at a time from each broker that leads one of our partitions. */
  async fetchUntilOver(): Promise<void> {
    try {
      while (!this.over.aborted && this.#partitions.length > 0) {
        while (this.#aheadBytes > aheadBytesMax && !this.over.aborted) await this.#room.wait();
        if (this.over.aborted) return;
        await this.#fetchRound();
      }
    } catch (error) {
      if (!this.over.aborted) this.#failure ??= error;
      this.end();
    }
  }

  async #fetchRound(): Promise<void> {
    const metadata = await this.#soon(this.#deps.client.metadata({ topics: [...this.#deps.client.topics.current] }));
    const byLeader = new Map<number, Partition[]>();
    // Each fetch begins with another partition. The bytes of one fetch are bounded, so the last partition in a fixed order would always
    // wait for the others.
    this.#partitions.push(this.#partitions.shift() as Partition);
    for (const partition of this.#partitions) {
      if (partition.waits) continue;
      const leader = metadata.topics.get(partition.topic)?.partitions[partition.index]?.leader ?? -1;
      if (metadata.brokers.has(leader)) byLeader.set(leader, [...(byLeader.get(leader) ?? []), partition]);
    }
    if (byLeader.size === 0) return this.#stale();
    await Promise.all([...byLeader].map(([leader, partitions]) => this.#fetch(leader, partitions, metadata)));
  }

  async #fetch(leader: number, partitions: readonly Partition[], metadata: Metadata): Promise<void> {
    const { client, fetching } = this.#deps;
    const names = new Map(partitions.map(({ topic }) => [metadata.topics.get(topic)?.id as string, topic]));
    const topics = [...names].map(([topicId, topic]) => ({
      topicId,
      partitions: partitions.filter((one) => one.topic === topic).map(fetchOf),
    }));
    try {
      const how = { maxWaitTime: fetchWaitMs, minBytes: 1, maxBytes: fetchBytesMax, isolationLevel: 0 as const };
      const answer = await this.#soon(client.fetch({ ...how, node: leader, topics, connectionPool: fetching }));
      await this.#received(answer as unknown as FetchAnswer, names);
    } catch (error) {
      const answer = (error as { response?: FetchAnswer }).response;
      if (named(error, "OFFSET_OUT_OF_RANGE") !== undefined && answer !== undefined) await this.#backInRange(answer, names);
      else if (isStale(error)) await this.#stale();
      else throw error;
    }
  }

  async #received(answer: FetchAnswer, names: ReadonlyMap<string, string>): Promise<void> {
    const { unpack, unreadable } = this.#deps;
    const waits = (topic: string, index: number, reason: string) => {
      const partition = this.#byPlace.get(placeOf(topic, index));
      if (partition === undefined || partition.waits) return;
      partition.waits = true;
      this.#deps.waits(`${topic}[${index}]`, reason);
    };
    const positionOf = (topic: string, index: number) => this.#byPlace.get(placeOf(topic, index))?.position ?? 0n;
    let some = false;
    for await (const fetched of fetchedOf(answer, { names, unpack, unreadable, waits, positionOf })) {
      if (this.over.aborted) return;
      const partition = this.#byPlace.get(placeOf(fetched.topic, fetched.index)) as Partition;
      partition.position = fetched.next;
      this.#ahead.push(fetched);
      this.#aheadBytes += fetched.bytes;
      some = true;
    }
    if (some) this.#deps.wake();
  }

  /** The records at our position were removed because they were too old: continue with the oldest existing record. */
  async #backInRange(answer: FetchAnswer, names: ReadonlyMap<string, string>): Promise<void> {
    const lost: Partition[] = [];
    for (const { topicId, partitions } of answer.responses) {
      for (const { partitionIndex, errorCode } of partitions) {
        const partition = this.#byPlace.get(placeOf(names.get(topicId) ?? "", partitionIndex));
        if (errorCode === outOfRange && partition !== undefined) lost.push(partition);
      }
    }
    await this.#reset(lost, "earliest");
  }

  async #reset(partitions: readonly Partition[], to: "earliest" | "latest"): Promise<void> {
    if (partitions.length === 0) return;
    const topics = [...new Set(partitions.map(({ topic }) => topic))];
    const timestamp = to === "latest" ? -1n : -2n;
    const offsets = await this.#settled(() => this.#soon(this.#deps.client.listOffsets({ topics, timestamp })));
    for (const partition of partitions) {
      const position = offsets.get(partition.topic)?.[partition.index] ?? 0n;
      // The committed offset is wrong, even if it is higher: another member would continue there.
      Object.assign(partition, { position, done: position, committed: -1n });
    }
  }

  /** New partitions have no leader for a moment; when that lasts longer, the consumer reports it. */
  async #settled<T>(ask: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        if (!isStale(error) || tries === staleTries || this.over.aborted) throw error;
        await this.#stale();
      }
    }
  }

  async #stale(): Promise<void> {
    this.#deps.client.clearMetadata();
    await new Promise((resolve) => setTimeout(resolve, staleMs));
  }

  /** Commits until everything that was handled is committed: a fast consumer commits many calls at once. */
  async #commitAll(): Promise<void> {
    try {
      while (this.#partitions.some(({ done, committed }) => done > committed)) await this.#commit();
    } catch (error) {
      // Other members have our partitions now, or soon: they receive the uncommitted records again.
      if (named(error, "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID") === undefined) this.#failure ??= error;
      this.end();
    } finally {
      this.#committing = null;
    }
  }

  async #commit(): Promise<void> {
    const due = this.#partitions.filter(({ done, committed }) => done > committed);
    const offsets = due.map(({ topic, index, done }) => ({ topic, partition: index, offset: done, leaderEpoch: -1 }));
    await this.#soon(this.#deps.client.commit({ offsets }));
    for (const [at, partition] of due.entries()) partition.committed = offsets[at]?.offset ?? partition.committed;
  }

  #soon<T>(request: Promise<T>): Promise<T> {
    return within(requestMsMax, request, this.#deps.late);
  }
}

/** The error code OFFSET_OUT_OF_RANGE. */
const outOfRange = 1;

function fetchOf({ index, position }: Partition) {
  return { partition: index, fetchOffset: position, partitionMaxBytes: partitionBytesMax, currentLeaderEpoch: -1, lastFetchedEpoch: -1 };
}

function placeOf(topic: string, index: number): string {
  return `${index} ${topic}`;
}
