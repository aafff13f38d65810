// Finds topics on Kafka, creates them, or adds partitions. A client without the permission to create topics can still use existing ones.
//
// One session with the broker at a time does this for all callers that wait: hundreds of roles may be announced at once.

import type { EnsureOptions } from "../../core/bus/bus.ts";
import { checkTopic } from "../../core/bus/check.ts";
import { LongshoreError } from "../../core/errors.ts";
import { clientOptions, hangUp, type KafkaModule, messageOf, named, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

/** The maximum number of group members that work at once; each partition adds a small cost to every broker and rebalance. */
const partitionsDefault = 8;
/**
 * The limit of requested partitions: every partition costs the broker. If a role has more workers than this, some of them get no records.
 */
const partitionsMax = 256;
/** Use the brokers' own default. */
const replicasDefault = -1;

type Admin = InstanceType<KafkaModule["Admin"]>;

interface Wanted {
  readonly count: number;
  readonly widened: EnsureOptions["widened"];
}

/** Topics that one session looks for, and what went wrong with some of them. */
interface Batch {
  readonly wanted: Map<string, Wanted>;
  readonly failed: Map<string, unknown>;
  readonly done: ReturnType<typeof resolvers>;
}

export class KafkaTopics {
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #closing: AbortSignal;
  /** The number of partitions of each existing topic; 0 where the number does not matter. */
  readonly #known = new Map<string, number>();
  /** What the next session does. */
  #next: Batch | undefined;
  #isBusy = false;

  constructor(kafka: KafkaModule, options: KafkaBusOptions, closing: AbortSignal) {
    this.#kafka = kafka;
    this.#options = options;
    this.#closing = closing;
  }

  /** Removes topics that turned out not to exist. */
  forget(topics: Iterable<string>): void {
    for (const topic of topics) this.#known.delete(topic);
  }

  async ensure(topics: readonly string[], { sharedBy, widened }: EnsureOptions = {}): Promise<void> {
    for (const topic of topics) checkTopic(topic);
    const { partitions = partitionsDefault } = this.#options;
    const count = sharedBy === undefined ? 0 : Math.min(partitionsMax, Math.max(partitions, sharedBy));
    const missing = topics.filter((topic) => this.#isMissing(topic, count));
    if (missing.length === 0) return;
    this.#next ??= { wanted: new Map(), failed: new Map(), done: resolvers() };
    const batch = this.#next;
    for (const topic of missing) {
      const before = batch.wanted.get(topic);
      batch.wanted.set(topic, { count: Math.max(count, before?.count ?? 0), widened: widened ?? before?.widened });
    }
    if (!this.#isBusy) void this.#work();
    await batch.done.promise;
    for (const topic of missing) if (batch.failed.has(topic)) throw batch.failed.get(topic);
  }

  #isMissing(topic: string, count: number): boolean {
    return (this.#known.get(topic) ?? -1) < count;
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    for (let batch = this.#next; batch !== undefined; batch = this.#next) {
      this.#next = undefined;
      await this.#perform(batch).then(batch.done.resolve, batch.done.reject);
    }
    this.#isBusy = false;
  }

  async #perform({ wanted, failed }: Batch): Promise<void> {
    // The session before this one may have done it.
    for (const [topic, { count }] of wanted) if (!this.#isMissing(topic, count)) wanted.delete(topic);
    if (wanted.size === 0) return;
    const { partitions = partitionsDefault } = this.#options;
    const admin = new this.#kafka.Admin(clientOptions(this.#options));
    try {
      const there = new Set(await within(requestMsMax, admin.listTopics(), this.#closing));
      const made = new Set<string>();
      for (const [topic, { count }] of wanted) {
        try {
          if (!there.has(topic) && (await this.#create(admin, topic, Math.max(partitions, count)))) made.add(topic);
          this.#known.set(topic, made.has(topic) ? count : 0);
        } catch (error) {
          // A refusal is about this topic alone; anything else is trouble with the broker.
          if (!(error instanceof LongshoreError && error.code === "LONGSHORE_UNAUTHORIZED")) throw error;
          failed.set(topic, error);
        }
      }
      const others = [...wanted].filter(([topic, { count }]) => count > 0 && !made.has(topic) && !failed.has(topic));
      if (others.length > 0) await this.#widen(admin, new Map(others));
    } finally {
      await hangUp(admin);
    }
  }

  /** A topic that a broker created automatically has the broker's default number of partitions, mostly one. */
  async #widen(admin: Admin, wanted: ReadonlyMap<string, Wanted>): Promise<void> {
    const metadata = await within(requestMsMax, admin.metadata({ topics: [...wanted.keys()], forceUpdate: true }), this.#closing);
    for (const [name, { count, widened }] of wanted) {
      const has = metadata.topics.get(name)?.partitionsCount ?? count;
      const what = `the partitions of the topic ${name}`;
      try {
        if (has < count) {
          await within(requestMsMax, admin.createPartitions({ topics: [{ name, count, assignments: null }] }), this.#closing);
          widened?.(name, has, count);
        }
        this.#known.set(name, Math.max(has, count));
        this.#options.trouble?.working(what);
      } catch (error) {
        this.#options.trouble?.failing(what, tooFew(name, { has, count }, error));
      }
    }
  }

  /** Returns false when another client created the topic at the same moment. */
  async #create(admin: Admin, topic: string, partitions: number): Promise<boolean> {
    const { replicas = replicasDefault } = this.#options;
    try {
      await within(requestMsMax, admin.createTopics({ topics: [topic], partitions, replicas }), this.#closing);
      return true;
    } catch (error) {
      if (named(error, "TOPIC_ALREADY_EXISTS") !== undefined) return false;
      if (named(error, "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "POLICY_VIOLATION") === undefined) throw error;
      throw new LongshoreError(
        "LONGSHORE_UNAUTHORIZED",
        `The topic ${topic} does not exist and cannot be created: ${messageOf(error)}. Create it with ${partitions} partitions.`,
        { cause: error },
      );
    }
  }
}

function tooFew(topic: string, { has, count }: { has: number; count: number }, cause: unknown): LongshoreError {
  const workers = has === 1 ? "one worker gets" : `${has} workers share`;
  const message = `The topic ${topic} has ${has} of ${count} partitions, so ${workers} all of its records, however many there are. Adding the others failed: ${messageOf(cause)}. Add them with kafka-topics.sh --alter --topic ${topic} --partitions ${count}.`;
  return new LongshoreError("LONGSHORE_LIMIT", message, { cause });
}

function resolvers() {
  let resolve: () => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<void>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  return { promise, resolve, reject };
}
