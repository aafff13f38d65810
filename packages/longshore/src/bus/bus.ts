// The port of message buses: topics with records, read by groups. What is published is durable, and each group gets every record at
// least once. Kafka is one; the server's own data file is another, for installations without a broker.

import type { Clock } from "../core/clock.ts";
import type { FailureListener } from "../core/failure-listener.ts";

/** A record as a reader receives it. */
export interface BusRecord {
  readonly topic: string;
  readonly key: string | null;
  readonly value: Uint8Array;
  /** The position of the record, for logs, such as `status.gpu.v1[2]@1734`. */
  readonly place: string;
  /** When it was published, in epoch milliseconds. */
  readonly at: number;
}

/** A record to publish. */
export interface Outgoing {
  readonly topic: string;
  /** Records with one key stay in order; null for a record that may go anywhere. */
  readonly key: string | null;
  readonly value: string | Uint8Array;
  /** How often it was sent before to a reader that did not take it: where readers share a topic, the next of them gets it. */
  readonly retry?: number;
}

/** What a consumer reads, and the function that receives it. */
export interface Subscription {
  /** Members of one group share its records out; each group gets all of them. */
  readonly group: string;
  readonly topics: readonly string[];
  /** Where a group begins that has never been there before. */
  readonly from: "earliest" | "latest";
  /**
   * Gets records in the order of their keys, one call at a time. When it resolves they are done with and committed; when it throws they
   * come again after a pause. At the end of a member's life, or when a broker moves records to another member, some may come twice.
   */
  handle(records: readonly BusRecord[]): Promise<void>;
  /** At most as many records in one call. */
  readonly maxRecords?: number;
}

/** A running subscription. */
export interface BusConsumer {
  /** Resolves when it receives: what is published from now on reaches its group. Rejects when it is closed before. */
  readonly ready: Promise<void>;
  /** No further records before `resume`, but it stays a member. May be called in the middle of `handle`. */
  pause(): void;
  resume(): void;
  /** Takes further topics in; resolves when it receives them. */
  add(topics: readonly string[]): Promise<void>;
  /** Waits for the call of `handle` that is under way, commits, and leaves its group. */
  close(): Promise<void>;
}

/** Carries records from publishers to groups of readers, in order for each key. */
export interface Bus {
  /** For logs; never a secret. */
  readonly name: string;
  /**
   * Resolves when every record is durable. Calls that come together share a request. Rejects with LONGSHORE_LIMIT when a record is too
   * large, before anything is sent, and with LONGSHORE_UNREACHABLE when the records were not accepted for long: then it is not known
   * whether they were published, and the caller may repeat.
   */
  publish(records: readonly Outgoing[]): Promise<void>;
  subscribe(subscription: Subscription): BusConsumer;
  /** Creates those topics that are missing. */
  ensure(topics: readonly string[], options?: EnsureOptions): Promise<void>;
  /** How many members a group has now, ours and others. Absent where that is not known. */
  members?(group: string): Promise<number>;
  close(): Promise<void>;
}

export interface EnsureOptions {
  /**
   * So many members of a group share the topics: they get more partitions where they have fewer than that, or fewer than a topic is created with.
   * One that a broker made by itself often has one, and then one member gets everything.
   */
  readonly sharedBy?: number;
  /** Called for each topic that got more partitions. */
  widened?(topic: string, before: number, now: number): void;
}

/** What every implementation takes. */
export interface BusOptions {
  readonly trouble?: FailureListener;
  readonly clock?: Clock;
  /** Before records that could not be handled are given out again, and before whatever failed is tried again. */
  readonly againMs?: number;
}

/** Default for the records of one call of `handle`: large enough that a commit for each call costs little. */
export const handledRecordsMax = 500;
/** What Kafka's brokers accept in one request by default, with room for key and frame: the same limit on every bus. */
export const recordBytesMax = 1_000_000;
/** Long enough that a broker or a disk that is away is not tried in a busy loop. */
export const againMsDefault = 1_000;
