// The port of an embedded bus to its store: topics as numbered records, and how far each group has come. Records are not shared out
// beforehand: the first member of a group that polls gets the next ones. So others get work before a lost member is detected.

import type { BusRecord, Outgoing } from "./bus.ts";

/** Records that a member has and others of its group do not get. */
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

/** Programs elsewhere are guests: they may not use up what the server's own need. */
export type Origin = "own" | "guest";

export interface BusLog {
  /** Durable when it resolves: all of them or none. */
  append(records: readonly Outgoing[], by?: Origin): Promise<void>;
  /** Lets the group begin with these topics where it has not yet. Durable when it resolves. */
  join(group: string, topics: readonly string[], from: "earliest" | "latest", by?: Origin): Promise<void>;
  /** The next records of the group that no member has, in order for each topic; null when there are none. */
  take(options: TakeOptions): Promise<Taken | null>;
  /** The member has done with what it took. Durable when it resolves; until then a restart gives the records out again. False when it had not got them. */
  commit(member: string, taken: number): Promise<boolean>;
  /** Gives records back, to be handed out first: what was taken, or all that the member has. */
  release(member: string, taken?: number): void;
  /** Called when there may be something to take. Ends with the function that is returned. */
  watch(topics: readonly string[], wake: () => void): () => void;
}

/** What is kept of a topic that a group has not read: more, or longer, means that it never will be. */
export const topicRecordsMax = 1_000_000;
export const recordMsMax = 7 * 24 * 3_600_000;
/** A group that no member has used for so long is forgotten, as Kafka forgets it. */
export const groupMsMax = 7 * 24 * 3_600_000;
/** Topics of one store; each handler has two. */
export const topicsMax = 8_000;
/** So many of them may be made by guests. The rest are for the coordinator's own: two for each role that it serves. */
export const guestTopicsMax = 5_000;
/** Groups of guests, each in each of its topics: about 30 MB. A worker has two of its own, and those that restart leave theirs behind. */
export const groupsMax = 100_000;
/** A group that was silent for this long makes room when there are too many. Readers come back every 30 s. */
export const groupIdleMs = 3_600_000;
/** Records that one call may bring and their bytes: what a commit takes in without holding up everything else for long. */
export const appendedMax = 5_000;
/** Bytes of one hand-out, besides one record that is larger by itself. */
export const takenBytesMax = 4 * 1024 * 1024;
