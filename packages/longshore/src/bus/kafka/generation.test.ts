import type { ConnectionPool, Consumer } from "@platformatic/kafka";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { Generation } from "./generation.ts";

/** Like the library's errors, whose class is found with a method. */
const stale = Object.assign(new Error("not the leader"), { findBy: (name: string) => (name === "hasStaleMetadata" ? {} : null) });

function generationOf(client: object): Generation {
  return new Generation({
    client: client as Consumer,
    fetching: {} as ConnectionPool,
    assignment: new Map([["t", [0]]]),
    from: "latest",
    added: {},
    late: new AbortController().signal,
    unpack: async (packed) => packed,
    unreadable() {},
    waits() {},
    wake() {},
  });
}

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

it("waits until new partitions have leaders", async () => {
  const listOffsets = vi
    .fn()
    .mockRejectedValueOnce(stale)
    .mockRejectedValueOnce(stale)
    .mockResolvedValue(new Map([["t", [7n]]]));
  const commit = vi.fn(async () => {});
  const clearMetadata = vi.fn();
  const begun = generationOf({ listCommittedOffsets: async () => new Map(), listOffsets, commit, clearMetadata }).begin();
  await vi.runAllTimersAsync();
  await begun;
  expect(clearMetadata).toHaveBeenCalledTimes(2);
  expect(commit).toHaveBeenCalledExactlyOnceWith({ offsets: [{ topic: "t", partition: 0, offset: 7n, leaderEpoch: -1 }] });
});

it("gives up when partitions get no leader, and commits nothing", async () => {
  const commit = vi.fn(async () => {});
  const listOffsets = async () => Promise.reject(stale);
  const begun = generationOf({ listCommittedOffsets: async () => new Map(), listOffsets, commit, clearMetadata() {} }).begin();
  const refused = expect(begun).rejects.toBe(stale);
  await vi.runAllTimersAsync();
  await refused;
  expect(commit).not.toHaveBeenCalled();
});
