// Reads how many members a consumer group has, and which partitions they read. The members may be workers in any language. This happens
// rarely, so each read opens its own connection.

import type { Admin } from "@platformatic/kafka";
import { LongshoreError } from "../../core/errors.ts";
import { type Assignment, decodeAssignment } from "../../net/kafka/assignment.ts";
import { clientOptions, hangUp, type KafkaModule, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

/** How long callers share a result: many callers may read one group at the same time. */
const shareMs = 1_000;
/** Known partitions are read again after this time. They change when a topic gets more partitions, which members notice after minutes. */
const partitionsMsMax = 5_000;

interface Group {
  readonly members: number;
  /** The partitions that members read, by topic, in order. */
  readonly read: ReadonlyMap<string, readonly number[]>;
}

interface Known {
  read: ReadonlyMap<string, readonly number[]>;
  until: number;
}

export class KafkaGroups {
  readonly #kafka: KafkaModule;
  readonly #options: KafkaBusOptions;
  readonly #closing: AbortSignal;
  readonly #reading = new Map<string, Promise<Group>>();
  readonly #known = new Map<string, Known>();

  constructor(kafka: KafkaModule, options: KafkaBusOptions, closing: AbortSignal) {
    this.#kafka = kafka;
    this.#options = options;
    this.#closing = closing;
  }

  async members(group: string): Promise<number> {
    return (await this.#group(group)).members;
  }

  /**
   * The partitions of a topic that the members of the group read. Without members now: the partitions that the last members read. Undefined
   * when not known.
   */
  async read(group: string, topic: string): Promise<readonly number[] | undefined> {
    const known = this.#known.get(group);
    if (known === undefined || Date.now() > known.until) {
      // If the broker does not respond, this is reported when records are sent to it.
      const reading = this.#group(group).catch(() => undefined);
      if (known === undefined) await reading;
    }
    return this.#known.get(group)?.read.get(topic);
  }

  #group(group: string): Promise<Group> {
    const known = this.#reading.get(group);
    if (known !== undefined) return known;
    const reading = this.#describe(group);
    this.#reading.set(group, reading);
    const forget = () => {
      setTimeout(() => this.#reading.delete(group), shareMs).unref();
    };
    reading.then(forget, forget);
    return reading;
  }

  async #describe(group: string): Promise<Group> {
    const admin = new this.#kafka.Admin(clientOptions(this.#options));
    try {
      const members = await within(requestMsMax, this.#membersOf(admin, group), this.#closing);
      const read = readBy(members);
      // While a group rebalances, its members read nothing. The partitions from before stay: the same ones will be read soon.
      if (read.size > 0 || !this.#known.has(group)) this.#known.set(group, { read, until: Date.now() + partitionsMsMax });
      return { members: members.length, read };
    } finally {
      await hangUp(admin);
    }
  }

  /** Does not use the library's own method: for a member without partitions, that method reads beyond the end of the assignment. */
  async #membersOf(admin: Admin, group: string): Promise<readonly Member[]> {
    const kafka = this.#kafka;
    const [coordinator] = await admin.findCoordinator({ keyType: kafka.FindCoordinatorKeyTypes.GROUP, keys: [group] });
    if (coordinator === undefined) throw new LongshoreError("LONGSHORE_UNREACHABLE", `No broker coordinates the group ${group}.`);
    const { groups } = await new Promise<Answer>((resolve, reject) => {
      admin[kafka.kGetConnection]({ host: coordinator.host, port: coordinator.port }, (error, connection) => {
        if (error || connection === undefined) return reject(error);
        admin[kafka.kGetApi]<[string[], boolean], Answer>("DescribeGroups", (unsupported, api) => {
          if (unsupported || api === undefined) return reject(unsupported);
          api(connection, [group], false, (failed, answer) => (failed ? reject(failed) : resolve(answer as Answer)));
        });
      });
    });
    return groups.find(({ groupId }) => groupId === group)?.members ?? [];
  }
}

interface Member {
  readonly memberAssignment: Buffer;
}

interface Answer {
  readonly groups: readonly { readonly groupId: string; readonly members: readonly Member[] }[];
}

/** Empty for invalid bytes: the leader of a group may be any program, and its mistakes must not fail this read. */
function assignmentIn(bytes: Buffer): Assignment {
  try {
    return decodeAssignment(bytes).assignment;
  } catch {
    return new Map();
  }
}

function readBy(members: readonly Member[]): Map<string, readonly number[]> {
  const read = new Map<string, number[]>();
  for (const { memberAssignment } of members) {
    for (const [topic, partitions] of assignmentIn(memberAssignment)) {
      if (partitions.length > 0) read.set(topic, [...(read.get(topic) ?? []), ...partitions]);
    }
  }
  return new Map([...read].map(([topic, partitions]) => [topic, partitions.sort((one, other) => one - other)]));
}
