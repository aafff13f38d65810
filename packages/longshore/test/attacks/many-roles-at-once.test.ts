// A client that may write to the topic of announcements announces workers with hundreds of roles each. The coordinator opened a connection
// for each role of each worker, all at the same time, and listed every topic on each connection. Its event loop and the broker were busy
// for minutes.

import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { loadKafka } from "../../src/bus/kafka/client.ts";
import { KafkaTopics } from "../../src/bus/kafka/topics.ts";
import { kafkaMissing, sharedKafka } from "../support/kafka.ts";
import { untilElsewhere as until } from "../support/until.ts";

describe.skipIf(kafkaMissing !== undefined)(`many roles${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it("share sessions with the broker, one after the other", async () => {
    const { brokers } = await sharedKafka();
    const kafka = await loadKafka();
    const open = { now: 0, most: 0, ever: 0 };
    class Admin extends kafka.Admin {
      constructor(options: ConstructorParameters<typeof kafka.Admin>[0]) {
        super(options);
        open.now++;
        open.ever++;
        open.most = Math.max(open.most, open.now);
      }
      override close(...rest: Parameters<InstanceType<typeof kafka.Admin>["close"]>) {
        open.now--;
        return super.close(...rest);
      }
    }
    const topics = new KafkaTopics(
      { ...kafka, Admin: Admin as typeof kafka.Admin },
      { brokers, partitions: 1 },
      new AbortController().signal,
    );
    const roles = Array.from({ length: 10 }, (_, at) => `${randomUUID()}.role${at}`);
    // Three workers, each with all roles.
    await Promise.all([1, 2, 3].flatMap((workers) => roles.map((role) => topics.ensure([role], { sharedBy: workers }))));
    expect(open.most).toBe(1);
    expect(open.ever).toBeLessThanOrEqual(3);
    const admin = new kafka.Admin({ clientId: "test", bootstrapBrokers: [...brokers] });
    // A broker knows a new topic a moment after it was created.
    await until(async () => {
      const there = new Set(await admin.listTopics());
      return roles.every((role) => there.has(role));
    });
    await admin.close();
  });
});
