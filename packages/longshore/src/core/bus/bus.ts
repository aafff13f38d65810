// The port of message buses: topics with records, which consumer groups read. Published records are durable. A group receives a record at
// least once: after a failure, it may receive it again. Kafka is one implementation; the server's own data file is another, for
// installations without a broker.

import type { Clock } from "../clock.ts";
import type { FailureListener } from "../failure-listener.ts";

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
  /** Records with the same key are delivered in the order in which they were published. Null: in any order. */
  readonly key: string | null;
  readonly value: string | Uint8Array;
  /**
   * How often the record was already sent to a reader that did not handle it. When several readers share a topic, it is then sent to the
   * next one.
   */
  readonly retry?: number;
}

/** What a consumer reads, and the function that handles it. */
export interface Subscription {
  /** Members of one group share its records; each group receives all of them. */
  readonly group: string;
  readonly topics: readonly string[];
  /** Where a new group starts to read. */
  readonly from: "earliest" | "latest";
  /**
   * Receives records, in order for each key, one call at a time. When it resolves, the records are committed; when it throws, they are
   * delivered again after a delay. When a member ends, or when a broker moves records to another member, some records may be delivered
   * twice.
   */
  handle(records: readonly BusRecord[]): Promise<void>;
  /** The maximum number of records in one call. */
  readonly maxRecords?: number;
}

/** A running subscription. */
export interface BusConsumer {
  /**
   * Resolves when the consumer receives: its group gets everything that is published from now on. Rejects when the consumer is closed
   * first.
   */
  readonly ready: Promise<void>;
  /** Stops deliveries until `resume`; the consumer stays a member of its group. May be called inside of `handle`. */
  pause(): void;
  resume(): void;
  /** Adds topics; resolves when the consumer receives them. */
  add(topics: readonly string[]): Promise<void>;
  /** Waits for the running call of `handle`, commits, and leaves the group. */
  close(): Promise<void>;
}

/** Delivers records from publishers to consumer groups, in order for each key. */
export interface Bus {
  /** For logs; never a secret. */
  readonly name: string;
  /**
   * Resolves when every record is durable. Concurrent calls share a request. Rejects with LONGSHORE_LIMIT before anything is sent when a
   * record is too large. Rejects with LONGSHORE_UNREACHABLE when the records were not accepted for a long time. Then they may or may not be
   * published, and the caller may repeat the call.
   */
  publish(records: readonly Outgoing[]): Promise<void>;
  subscribe(subscription: Subscription): BusConsumer;
  /** Creates the topics that are missing. */
  ensure(topics: readonly string[], options?: EnsureOptions): Promise<void>;
  /** The current number of members of a group, of this program and others. Absent where that is not known. */
  members?(group: string): Promise<number>;
  close(): Promise<void>;
}

export interface EnsureOptions {
  /**
   * The number of members that share the topics. A topic gets more partitions when it has fewer than this number, or fewer than a new topic
   * gets. A topic that a broker created automatically often has one partition, so that one member gets all records.
   */
  readonly sharedBy?: number;
  /** Called for each topic that received more partitions. */
  widened?(topic: string, before: number, now: number): void;
}

/** The options of every implementation. */
export interface BusOptions {
  readonly trouble?: FailureListener;
  readonly clock?: Clock;
  /** The delay before failed records are delivered again, and before a failed operation is retried. */
  readonly againMs?: number;
}

/** The default of `maxRecords`: large enough that a commit for each call costs little. */
export const handledRecordsMax = 500;
/** The limit of one record with its key, on every bus: Kafka's default limit of a request, minus room for the frame. */
export const recordBytesMax = 1_000_000;
/** Long enough that an unreachable broker or disk is not retried in a busy loop. */
export const againMsDefault = 1_000;
