// Foreign members of a Kafka consumer group. The attacker may join the groups of FlowKit's topics. The broker passes on a leader's
// assignments without a check, and a server reads them to learn which partitions workers read. A negative length made the reader go back to
// the same bytes, until the memory was full. Brokers check subscriptions themselves; `membership.test.ts` has those that a broker passes on.

import { Consumer, kGetApi, kGetConnection } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../src/bus/kafka.ts";
import type { Bus } from "../../src/core/bus/bus.ts";
import { assignorName, encodeSubscription } from "../../src/net/kafka/assignment.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../support/kafka.ts";
import { untilElsewhere as until } from "../support/until.ts";

/** An empty topic without partitions, then a topic whose name has -6 bytes: reading continues four bytes before it. */
const backwardsAssignment = Buffer.from(`00007fffffff000000000000fffa${"00".repeat(8)}`, "hex");

type Api = (...args: unknown[]) => void;

/** A client that sends arbitrary bytes to the coordinator of a group. */
async function strangerIn(group: string, brokers: readonly string[]) {
  const client = new Consumer({ clientId: "stranger", bootstrapBrokers: [...brokers], groupId: group, retries: 0 });
  onTestFinished(() => client.close(true));
  const call = async (name: string, ...args: unknown[]): Promise<{ memberId: string; generationId: number; leader: string }> => {
    const coordinator = await client.findGroupCoordinator();
    const { brokers: known } = await client.metadata({ topics: [] });
    return new Promise((resolve, reject) => {
      client[kGetConnection](known.get(coordinator) as never, (error, connection) => {
        if (error) return reject(error);
        client[kGetApi](name, (unsupported: Error | null, api: unknown) => {
          if (unsupported) return reject(unsupported);
          (api as Api)(connection, ...args, (failed: Error | null, answer: never) => (failed ? reject(failed) : resolve(answer)));
        });
      });
    });
  };
  const join = (metadata: Buffer) => {
    const joinAs = (memberId: string) =>
      call("JoinGroup", group, 30_000, 30_000, memberId, null, "consumer", [{ name: assignorName, metadata }], "");
    return joinAs("").catch((error) => joinAs((error.findBy("apiId", "MEMBER_ID_REQUIRED") as { memberId: string }).memberId));
  };
  return { call, join };
}

async function ours(prefix: string, brokers: readonly string[]) {
  const bus = await openKafkaBus({ ...soonHeard, brokers, partitions: 4, againMs: 10 });
  onTestFinished(() => bus.close());
  const [topic, group] = [`${prefix}t`, `${prefix}g`];
  const values: string[] = [];
  const handle = async (records: readonly { readonly value: Uint8Array }[]) =>
    void values.push(...records.map(({ value }) => Buffer.from(value).toString()));
  const subscribe = () => bus.subscribe({ group, topics: [topic], from: "earliest", handle });
  return { bus, topic, group, values, subscribe };
}

const publishAll = (bus: Bus, topic: string) =>
  bus.publish(Array.from({ length: 20 }, (_, at) => ({ topic, key: `k${at}`, value: String(at) })));

describe.skipIf(kafkaMissing !== undefined)(`strangers in a group${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it.each([
    ["a topic that is not there", (prefix: string) => encodeSubscription([`${prefix}absent`])],
    ["a topic that cannot be", () => encodeSubscription(["no topic / at all"])],
  ])("a member that subscribes with %s gets nothing, and the others get all", async (_name, subscriptionOf) => {
    const { brokers, prefix } = await sharedKafka();
    const { bus, topic, group, values, subscribe } = await ours(prefix, brokers);
    const consumer = subscribe();
    await consumer.ready;
    const stranger = await strangerIn(group, brokers);
    const { leader, memberId } = await stranger.join(subscriptionOf(prefix));
    expect(leader).not.toBe(memberId);
    await publishAll(bus, topic);
    await until(() => values.length === 20);
  });

  it("a leader whose assignments have negative lengths counts as a member without partitions", async () => {
    const { brokers, prefix } = await sharedKafka();
    const { bus, group } = await ours(prefix, brokers);
    const stranger = await strangerIn(group, brokers);
    const { memberId, generationId } = await stranger.join(encodeSubscription([`${prefix}t`]));
    const assignments = [{ memberId, assignment: backwardsAssignment }];
    await stranger.call("SyncGroup", group, generationId, memberId, null, "consumer", assignorName, assignments);
    expect(await bus.members?.(group)).toBe(1);
  });
});
