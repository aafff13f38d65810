import { describe, expect, it } from "vitest";
import type { Outgoing } from "../core/bus/bus.ts";
import { LongshoreError } from "../core/errors.ts";
import { PublishBatcher } from "./publish-batcher.ts";

function setup(more: { bytesMax?: number; recordsMax?: number; refuse?: (records: readonly Outgoing[]) => Error | undefined } = {}) {
  const sent: string[][] = [];
  const gather = new PublishBatcher({
    async send(records) {
      await new Promise((resolve) => setImmediate(resolve));
      const error = more.refuse?.(records);
      if (error !== undefined) throw error;
      sent.push(records.map(({ value }) => String(value)));
    },
    bytesMax: more.bytesMax ?? 1_000_000,
    recordsMax: more.recordsMax ?? 100,
  });
  return { gather, sent };
}

const record = (value: string): Outgoing => ({ topic: "a", key: null, value });

describe("the publish batcher", () => {
  it("sends the records of one turn together, and those that arrive during the send next", async () => {
    const { gather, sent } = setup();
    const first = Promise.all([gather.add([record("1")]), gather.add([record("2"), record("3")])]);
    await new Promise((resolve) => setImmediate(resolve));
    const later = Promise.all([gather.add([record("4")]), gather.add([record("5")])]);
    await Promise.all([first, later]);
    expect(sent).toEqual([
      ["1", "2", "3"],
      ["4", "5"],
    ]);
  });

  it("splits calls when a request is full, and resolves each call when its last record is sent", async () => {
    const { gather, sent } = setup({ recordsMax: 2 });
    const done: number[] = [];
    await Promise.all([
      gather.add(["1", "2", "3"].map(record)).then(() => done.push(sent.length)),
      gather.add([record("4")]).then(() => done.push(sent.length)),
      gather.add([record("5")]).then(() => done.push(sent.length)),
    ]);
    expect(sent).toEqual([["1", "2"], ["3", "4"], ["5"]]);
    expect(done).toEqual([2, 2, 3]);
    await gather.idle();
  });

  it("sends a record alone when it is larger than a request should be", async () => {
    const { gather, sent } = setup({ bytesMax: 100 });
    await Promise.all([gather.add([record("a")]), gather.add([record("x".repeat(200))]), gather.add([record("b")])]);
    expect(sent.map((values) => values.map((value) => value.length))).toEqual([[1], [200], [1]]);
  });

  it("rejects every call of a request that failed, and continues with the next", async () => {
    let failures = 1;
    const { gather, sent } = setup({ recordsMax: 2, refuse: () => (failures-- > 0 ? new Error("away") : undefined) });
    const results = await Promise.allSettled([gather.add(["1", "2", "3"].map(record)), gather.add([record("4")])]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    expect(sent).toEqual([["4"]]);
  });

  it("fails only the call of a record that is too large", async () => {
    const tooLarge = new LongshoreError("LONGSHORE_LIMIT", "too large");
    const { gather, sent } = setup({ refuse: (records) => (records.some(({ value }) => value === "huge") ? tooLarge : undefined) });
    const calls = [[record("1")], [record("huge"), record("2")], [record("3")]];
    const results = await Promise.allSettled(calls.map((records) => gather.add(records)));
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(sent).toEqual([["1"], ["3"]]);
  });
});
