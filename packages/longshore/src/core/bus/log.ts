// The port between the embedded bus and its store: topics as numbered records, and the position of each group. Records are not assigned to
// members in advance: the first member of a group that polls gets the next ones. So other members get work even before a lost member is
// detected.

import type { BusRecord, Outgoing } from "./bus.ts";

/** Records that one member has taken; other members of its group do not get them. */
export interface Taken {
  readonly id: number;
  readonly records: readonly BusRecord[];
}

export interface TakeOptions {
  readonly group: string;
  readonly member: string;
  readonly topics: readonly string[];
  readonly max: number;
}

/** Programs in other processes are guests: they must not use up the room that the server itself needs. */
export type Origin = "own" | "guest";

export interface BusLog {
  /** Appends all records or none. They are durable when the promise resolves. */
  append(records: readonly Outgoing[], by?: Origin): Promise<void>;
  /** Starts the group on those of the topics that it has not read before. Durable when the promise resolves. */
  join(group: string, topics: readonly string[], from: "earliest" | "latest", by?: Origin): Promise<void>;
  /** The next records of the group that no member has taken, in order for each topic; null when there are none. */
  take(options: TakeOptions): Promise<Taken | null>;
  /**
   * Marks taken records as handled. Durable when the promise resolves; until then, a restart delivers the records again. False when the
   * member does not hold them.
   */
  commit(member: string, taken: number): Promise<boolean>;
  /** Gives back the delivery `taken`, or everything that the member holds. These records are delivered next. */
  release(member: string, taken?: number): void;
  /** Calls `wake` when there may be records to take. The returned function stops these calls. */
  watch(topics: readonly string[], wake: () => void): () => void;
}

/** How many records of a topic are kept for groups that have not read them, and for how long. */
export const topicRecordsMax = 1_000_000;
export const recordMsMax = 7 * 24 * 3_600_000;
/** A group that no member has used for this long is removed, as in Kafka. */
export const groupMsMax = 7 * 24 * 3_600_000;
/** The limit of topics of one store; each role has two. */
export const topicsMax = 8_000;
/** The limit of topics that guests create. The rest is for the coordinator itself: two for each role that it serves. */
export const guestTopicsMax = 5_000;
/**
 * The limit of groups of guests, counted per topic: about 30 MB. Each worker has two groups of its own, and a restarted worker leaves its
 * old groups behind.
 */
export const groupsMax = 100_000;
/** When there are too many groups, those that were silent for this long are removed. Readers poll every 30 s. */
export const groupIdleMs = 3_600_000;
/** The limit of records of one append: a commit of this size does not block other work for long. */
export const appendedMax = 5_000;
/** The limit of bytes of one delivery; a single record may be larger. */
export const takenBytesMax = 4 * 1024 * 1024;
