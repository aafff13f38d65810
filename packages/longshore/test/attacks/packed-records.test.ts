// Kafka records that are small when compressed and huge when unpacked. The attacker may write to one topic of the bus. A broker limits only
// the compressed size of a batch, so one megabyte became a gigabyte in each reader. A batch that a reader could not unpack was fetched again
// without an end, so no later record of its partition arrived.

import { compressionsAlgorithms, Producer } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../src/bus/kafka.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../support/kafka.ts";
import { untilElsewhere as until } from "../support/until.ts";

const bombBytes = 64 * 1024 * 1024;

type Packing = "none" | "gzip" | "snappy" | "lz4" | "zstd";

async function stranger({ partitions = 1 } = {}) {
  const { brokers, prefix } = await sharedKafka();
  const topic = `${prefix}status`;
  const reports: string[] = [];
  const trouble = { failing: (_what: string, error: unknown) => void reports.push(String(error)), working: () => {} };
  const bus = await openKafkaBus({ ...soonHeard, brokers, partitions, trouble });
  onTestFinished(() => bus.close());
  const sizes: number[] = [];
  const handle = async (records: readonly { readonly value: Uint8Array }[]) => void sizes.push(...records.map(({ value }) => value.length));
  const consumer = bus.subscribe({ group: `${prefix}g`, topics: [topic], from: "earliest", handle });
  await consumer.ready;
  const producer = new Producer({ clientId: "stranger", bootstrapBrokers: [...brokers] });
  onTestFinished(() => producer.close());
  const send = (value: Buffer, compression: Packing, partition = 0) =>
    producer.send({ messages: [{ topic, key: Buffer.from("k"), value, partition }], compression });
  return { bus, topic, send, sizes, reports };
}

/** A Zstandard frame with uncompressed content, which every version of Node can write. */
function plainZstd(content: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt32LE(0xfd2fb528, 0);
  head.writeUInt8(0b1010_0000, 4);
  head.writeUInt32LE(content.length, 5);
  head.writeUIntLE((content.length << 3) | 1, 9, 3);
  return Buffer.concat([head, content]);
}

describe.skipIf(kafkaMissing !== undefined)(`packed records${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it.each(["gzip", "lz4"] as const)(
    "of 64 MiB in a few kilobytes of %s reach no reader, but the records after them do",
    async (packing) => {
      const { bus, topic, send, sizes, reports } = await stranger();
      await send(Buffer.alloc(bombBytes), packing);
      await bus.publish([{ topic, key: "k", value: "behind" }]);
      await until(() => sizes.includes(6));
      expect(sizes).toEqual([6]);
      expect(reports).toContainEqual(expect.stringContaining(`${topic}[0]@0`));
    },
  );

  it("that this version of Node cannot unpack block only their own partition, and are not lost", async () => {
    const { zstd } = compressionsAlgorithms;
    const original = { ...zstd };
    onTestFinished(() => void Object.assign(zstd, original));
    const { topic, send, sizes, reports } = await stranger({ partitions: 2 });
    Object.assign(zstd, {
      available: true,
      compressSync: (data: Buffer | { buffer: Buffer }) => plainZstd(Buffer.isBuffer(data) ? data : data.buffer),
    });
    await send(Buffer.from("packed"), "zstd");
    await until(() => reports.some((report) => report.includes(`${topic}[0] waits`)) || sizes.length > 0);
    await send(Buffer.from("behind it"), "none");
    await send(Buffer.from("elsewhere!"), "none", 1);
    await until(() => sizes.includes(10));
    // Newer versions of Node can unpack it.
    if (sizes.includes(6)) await until(() => sizes.includes(9));
    else expect(sizes).toEqual([10]);
  });

  it.each(["gzip", "snappy", "lz4"] as const)("of a usual size in %s are read", async (packing) => {
    const { send, sizes } = await stranger();
    await send(Buffer.from("packed".repeat(1_000)), packing);
    await until(() => sizes.length === 1);
    expect(sizes).toEqual([6_000]);
  });
});
