import { gzipSync } from "node:zlib";
import * as kafka from "@platformatic/kafka";
import { describe, expect, it } from "vitest";
import { encodeBatch } from "../../net/kafka/batch.ts";
import { type Fetched, fetchedOf } from "./records.ts";
import { unpackedBytesMax, unpacker } from "./unpack.ts";

interface Sent {
  readonly key?: string;
  readonly value?: Buffer;
}

function plain(offset: number, ...records: Sent[]): Buffer {
  const messages = records.map(({ key, value = Buffer.alloc(0) }) => ({ key: key === undefined ? null : Buffer.from(key), value }));
  const bytes = encodeBatch(messages, { producerId: 1n, producerEpoch: 0, sequence: 0, at: 1_000, crc32c: () => 0 });
  bytes.writeBigInt64BE(BigInt(offset));
  return bytes;
}

function packed(offset: number, ...records: Sent[]): Buffer {
  const bytes = plain(offset, ...records);
  const body = gzipSync(bytes.subarray(61));
  bytes.writeInt32BE(49 + body.length, 8);
  bytes.writeInt16BE(1, 21);
  return Buffer.concat([bytes.subarray(0, 61), body]);
}

async function read(position: number, ...batches: Buffer[]) {
  const left: string[] = [];
  const records = Buffer.concat(batches);
  const answer = { responses: [{ topicId: "id", partitions: [{ partitionIndex: 3, errorCode: 0, records }] }] };
  const found: Fetched[] = [];
  const names = new Map([["id", "t"]]);
  const unreadable = (place: string, reason: string) => void left.push(`${place}: ${reason}`);
  for await (const one of fetchedOf(answer, {
    names,
    unpack: unpacker(kafka),
    positionOf: () => BigInt(position),
    unreadable,
    waits: () => void left.push("waits"),
  }))
    found.push(one);
  const all = found.flatMap((one) => one.records);
  return { found, left, places: all.map(({ place }) => place), values: all.map(({ value }) => Buffer.from(value).toString()), all };
}

const text = (value: string) => ({ value: Buffer.from(value) });

describe("the response of a broker", () => {
  it("is read from the position on, with keys, times and offsets", async () => {
    const { all, places, values, found } = await read(1, plain(0, text("a"), { key: "k", ...text("b") }), packed(2, text("c")));
    expect(values).toEqual(["b", "c"]);
    expect(places).toEqual(["t[3]@1", "t[3]@2"]);
    expect(all.map(({ key, at }) => [key, at])).toEqual([
      ["k", 1_000],
      [null, 1_000],
    ]);
    expect(found[0]?.next).toBe(3n);
  });

  it("is read up to a batch that this process cannot unpack; this batch waits", async () => {
    const unknown = packed(1, text("b"));
    unknown.writeInt16BE(6, 21);
    const { values, found, left } = await read(0, plain(0, text("a")), unknown, plain(2, text("c")));
    expect([values, found[0]?.next, left]).toEqual([["a"], 1n, ["waits"]]);
  });

  it("may end within a batch, which is read later", async () => {
    const { values, found } = await read(0, plain(0, text("a")), plain(1, text("b")).subarray(0, 65));
    expect([values, found[0]?.next]).toEqual([["a"], 1n]);
  });

  it("counts the keys and an overhead for each record as waiting in memory", async () => {
    const { found } = await read(0, plain(0, { key: "k".repeat(10_000) }, {}));
    expect(found[0]?.bytes).toBeGreaterThan(10_000 + 2 * 200);
  });

  it.each([
    ["too large", packed(1, { value: Buffer.alloc(unpackedBytesMax + 1) }), "more than 16777216 bytes when unpacked"],
    ["damaged", Buffer.concat([packed(1, text("x")).subarray(0, 61), Buffer.alloc(21)]), "incorrect header check"],
  ])("skips a batch that is %s, and continues behind it", async (_how, bad, reason) => {
    bad.writeInt32BE(bad.length - 12, 8);
    const { values, left, found } = await read(0, plain(0, text("a")), bad, plain(2, text("c")));
    expect([values, found[0]?.next]).toEqual([["a", "c"], 3n]);
    expect(left).toEqual([expect.stringMatching(`^t\\[3\\]@1: .*${reason}`)]);
  });

  it("skips a batch that has fewer records than it declares, and one with too many", async () => {
    const fewer = plain(1, text("x"));
    fewer.writeInt32BE(2, 57);
    const many = plain(2, text("x"));
    many.writeInt32BE(2 ** 31 - 1, 57);
    const { values, left } = await read(0, plain(0, text("a")), fewer, many, plain(3, text("d")));
    expect(values).toEqual(["a", "d"]);
    expect(left).toEqual(["t[3]@1: it ends within a record", expect.stringContaining("more than 131072")]);
  });

  it("is unpacked up to the limit of one batch; the rest waits for the next fetch", async () => {
    const half = { value: Buffer.alloc(unpackedBytesMax / 2) };
    const { all, left, found } = await read(0, ...[0, 1, 2, 3, 4].map((offset) => packed(offset, half)));
    expect([all.length, left, found[0]?.next]).toEqual([2, [], 2n]);
  });
});
