// How many members a consumer group has now, in whatever language they are written, and which partitions they read. Read rarely, so a
// connection of its own for each read costs little.

import type { Admin } from "@platformatic/kafka";
import { LongshoreError } from "../../core/errors.ts";
import { decodeAssignment } from "../../net/kafka/assignment.ts";
import { clientOptions, hangUp, type KafkaModule, requestMsMax, within } from "./client.ts";
import type { KafkaBusOptions } from "./options.ts";

/** Many callers may read one group at once: they share a result, and an older one is read again. */
const answerMsMax = 1_000;
/**
 * The partitions of a topic change when it gets more, which members notice after minutes: a result of this age is still good; an older one
 * is read again.
 */
const readMsMax = 5_000;

interface Group {
  readonly members: number;
  /** By topic, in order. */
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
  readonly #asked = new Map<string, Promise<Group>>();
  readonly #known = new Map<string, Known>();

  constructor(kafka: KafkaModule, options: KafkaBusOptions, closing: AbortSignal) {
    this.#kafka = kafka;
    this.#options = options;
    this.#closing = closing;
  }

  async members(group: string): Promise<number> {
    return (await this.#group(group)).members;
  }

  /** The partitions of a topic that members of the group read, or did when there were any; undefined when that is not known. */
  async read(group: string, topic: string): Promise<readonly number[] | undefined> {
    const known = this.#known.get(group);
    if (known === undefined || Date.now() > known.until) {
      // A broker that does not respond is reported when records are sent to it.
      const asking = this.#group(group).catch(() => undefined);
      if (known === undefined) await asking;
    }
    return this.#known.get(group)?.read.get(topic);
  }

  #group(group: string): Promise<Group> {
    const asked = this.#asked.get(group);
    if (asked !== undefined) return asked;
    const asking = this.#ask(group);
    this.#asked.set(group, asking);
    const forget = () => {
      setTimeout(() => this.#asked.delete(group), answerMsMax).unref();
    };
    asking.then(forget, forget);
    return asking;
  }

  async #ask(group: string): Promise<Group> {
    const admin = new this.#kafka.Admin(clientOptions(this.#options));
    try {
      const members = await within(requestMsMax, this.#membersOf(admin, group), this.#closing);
      const read = readBy(members);
      // While a group shares its partitions out nothing of it is read; what was read before is read again soon.
      if (read.size > 0 || !this.#known.has(group)) this.#known.set(group, { read, until: Date.now() + readMsMax });
      return { members: members.length, read };
    } finally {
      await hangUp(admin);
    }
  }

  /** Not by the library's own method: it reads past the end of what a member without partitions has. */
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

function readBy(members: readonly Member[]): Map<string, readonly number[]> {
  const read = new Map<string, number[]>();
  for (const { memberAssignment } of members) {
    for (const [topic, partitions] of decodeAssignment(memberAssignment).assignment) {
      if (partitions.length > 0) read.set(topic, [...(read.get(topic) ?? []), ...partitions]);
    }
  }
  return new Map([...read].map(([topic, partitions]) => [topic, partitions.sort((one, other) => one - other)]));
}
