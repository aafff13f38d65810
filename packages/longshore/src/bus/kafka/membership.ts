// Membership in a consumer group, by the classic protocol. At a rebalance, the library's own implementation joins again immediately. Then
// the next owner of the partitions handles records a second time that are still in progress. Here, the consumer is notified, finishes and
// commits; only then does the member join again.
//
// Life of a member: join (waits for all others) -> sync (the leader assigns partitions) -> heartbeats, until the reply to one reports a
// rebalance or an unknown member -> join. A member can change its client. With its old member id, the group accepts it at once; with a new
// id, only after the session of the old id has expired.

import type { Consumer } from "@platformatic/kafka";
import { LongshoreError } from "../../core/errors.ts";
import {
  type Assignment,
  assign,
  assignorName,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
  type LeaderData,
} from "../../net/kafka/assignment.ts";
import { type KafkaModule, messageOf, named, requestMsMax, within } from "./client.ts";
import type { Shutdown } from "./shutdown.ts";

export interface MembershipOptions {
  readonly kafka: KafkaModule;
  readonly group: string;
  readonly sessionMs: number;
  readonly beatMs: number;
  readonly closing: Shutdown;
  /** Called by the leader with one text for each member whose subscription cannot be read; such a member gets no partitions. */
  unreadable(members: readonly string[]): void;
}

/** How long the other members wait for a member whose `handle` is running. */
export const rebalanceMs = 60_000;
/** A join waits for every other member; Python clients may take five minutes. */
const joinMsMax = 330_000;

interface Joined {
  readonly memberId: string;
  readonly generationId: number;
  readonly leader: string;
  readonly members: readonly { readonly memberId: string; readonly metadata: Buffer | null }[];
}

export class Membership {
  readonly #options: MembershipOptions;
  #client: Consumer | undefined;
  #memberId = "";
  #generation = -1;
  #leads = false;
  /** How many partitions each topic of the group had at the last assignment, as far as known. */
  #counts: LeaderData["counts"] = {};

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** Whether the group knows this member. */
  get isKnown(): boolean {
    return this.#memberId !== "";
  }

  /** From now on, the member uses this client. */
  use(client: Consumer): void {
    this.#client = client;
  }

  /** Joins, or joins again with other topics. Returns our partitions and, for each topic, the first partition that is new to the group. */
  async join(topics: readonly string[]): Promise<{ assignment: Assignment; added: LeaderData["added"] }> {
    for (;;) {
      try {
        const joined = await this.#join(topics);
        this.#memberId = joined.memberId;
        this.#generation = joined.generationId;
        const { assignment, leaderData } = await this.#sync(joined);
        this.#leads = joined.leader === joined.memberId;
        this.#counts = leaderData?.counts ?? {};
        // With this member id, the library commits and reads positions.
        Object.assign(this.#used(), { memberId: this.#memberId, generationId: this.#generation });
        return { assignment, added: leaderData?.added ?? {} };
      } catch (error) {
        const required = named(error, "MEMBER_ID_REQUIRED");
        if (required?.memberId) this.#memberId = required.memberId;
        else if (named(error, "UNKNOWN_MEMBER_ID") !== undefined) this.#memberId = "";
        else if (named(error, "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION") === undefined) throw inWords(error, this.#options.group);
      }
    }
  }

  /** Resolves when this generation has ended. Rejects when no heartbeat has succeeded for `sessionMs`. */
  async beatUntilOver(stop: AbortSignal): Promise<void> {
    const { sessionMs, beatMs, group, closing } = this.#options;
    let heardAt = performance.now();
    while (!stop.aborted) {
      await sleep(beatMs, stop);
      if (stop.aborted) return;
      try {
        await within(
          sessionMs / 2,
          this.#call<[string, number, string, null], unknown>("Heartbeat", group, this.#generation, this.#memberId, null),
          closing.late,
        );
        heardAt = performance.now();
      } catch (error) {
        if (named(error, "UNKNOWN_MEMBER_ID") !== undefined) this.#memberId = "";
        if (named(error, "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID") !== undefined) return;
        if (performance.now() - heardAt > sessionMs) throw error;
      }
    }
  }

  /** Whether this member is the leader and the number of partitions has changed since its last assignment. */
  async hasOutgrown(): Promise<boolean> {
    if (!this.#leads) return false;
    const counts = Object.entries(this.#counts);
    const now = await within(requestMsMax, this.#countsOf(counts.map(([topic]) => topic)), this.#options.closing.begun);
    // A topic without partitions does not exist now; it is counted when it exists again.
    return counts.some(([topic, count]) => (now[topic] ?? 0) > 0 && now[topic] !== count);
  }

  /** Leaves the group, so that the others need not wait until our session expires. */
  async leave(): Promise<void> {
    const { group, closing } = this.#options;
    const members = [{ memberId: this.#memberId, groupInstanceId: null, reason: "closed" }];
    const call = () => this.#call<[string, typeof members], unknown>("LeaveGroup", group, members);
    if (this.isKnown) await within(requestMsMax, call(), closing.late);
    this.#memberId = "";
  }

  #join(topics: readonly string[]): Promise<Joined> {
    const { group, sessionMs, closing } = this.#options;
    const protocols = [{ name: assignorName, metadata: encodeSubscription(topics) }];
    const args = [group, sessionMs, rebalanceMs, this.#memberId, null, "consumer", protocols, ""] as const;
    return within(joinMsMax, this.#call<[...typeof args], Joined>("JoinGroup", ...args), closing.begun);
  }

  async #sync({ memberId, generationId, leader, members }: Joined): Promise<ReturnType<typeof decodeAssignment>> {
    const { group, closing } = this.#options;
    const assignments = leader === memberId ? await within(requestMsMax, this.#assign(members), closing.begun) : [];
    const args = [group, generationId, memberId, null, "consumer", assignorName, assignments] as const;
    const call = this.#call<[...typeof args], { assignment: Buffer }>("SyncGroup", ...args);
    const { assignment } = await within(joinMsMax, call, closing.begun);
    return decodeAssignment(assignment);
  }

  async #assign(members: Joined["members"]): Promise<{ memberId: string; assignment: Buffer }[]> {
    const unreadable: string[] = [];
    const wanted = new Map(
      members.map(({ memberId, metadata }) => [memberId, topicsIn(metadata, (why) => unreadable.push(`${memberId}: ${why}`))]),
    );
    this.#options.unreadable(unreadable);
    const topics = [...new Set([...wanted.values()].flat())];
    const counts = await this.#countsOf(topics);
    const before = this.#counts;
    const more = topics.filter((topic) => (before[topic] ?? 0) > 0 && (counts[topic] as number) > (before[topic] as number));
    const leaderData = { counts, added: Object.fromEntries(more.map((topic) => [topic, before[topic] as number])) };
    const assigned = assign(wanted, (topic) => counts[topic] as number);
    return [...assigned].map(([memberId, assignment]) => ({ memberId, assignment: encodeAssignment(assignment, leaderData) }));
  }

  async #countsOf(topics: readonly string[]): Promise<{ [topic: string]: number }> {
    const { topics: known } = await this.#used().metadata({ topics: [...topics], forceUpdate: true });
    return Object.fromEntries(topics.map((topic) => [topic, known.get(topic)?.partitionsCount ?? 0]));
  }

  #used(): Consumer {
    if (this.#client === undefined) throw new LongshoreError("LONGSHORE_INTERNAL", "A member of a group has no client yet.");
    return this.#client;
  }

  /** Calls the coordinator of the group. */
  async #call<Args extends unknown[], Answer>(name: string, ...args: Args): Promise<Answer> {
    const { kafka } = this.#options;
    const client = this.#used();
    const coordinator = await client.findGroupCoordinator();
    const { brokers } = await client.metadata({ topics: [...client.topics.current] });
    const broker = brokers.get(coordinator);
    if (broker === undefined) throw new LongshoreError("LONGSHORE_UNREACHABLE", `Broker ${coordinator} of the group is not available.`);
    return new Promise<Answer>((resolve, reject) => {
      client[kafka.kGetConnection](broker, (error, connection) => {
        if (error || connection === undefined) return reject(error);
        client[kafka.kGetApi]<Args, Answer>(name, (unsupported, api) => {
          if (unsupported || api === undefined) return reject(unsupported);
          api(connection, ...args, (failed, answer) => (failed ? reject(failed) : resolve(answer as Answer)));
        });
      });
    });
  }
}

/** Any program may join the group: an invalid subscription must not stop the assignment of partitions to the other members. */
function topicsIn(metadata: Buffer | null, unreadable: (why: string) => void): string[] {
  try {
    return metadata === null ? [] : decodeSubscription(metadata);
  } catch (error) {
    unreadable(messageOf(error));
    return [];
  }
}

function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = () => {
      clearTimeout(timer);
      stop.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    timer.unref();
    stop.addEventListener("abort", over, { once: true });
  });
}

function inWords(error: unknown, group: string): unknown {
  if (named(error, "INCONSISTENT_GROUP_PROTOCOL") === undefined) return error;
  return new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `The group ${group} has members that do not support the partition assignor ${assignorName}: ${messageOf(error)}`,
    { cause: error },
  );
}
