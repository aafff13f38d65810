import { describe, expect, it } from "vitest";
import type { Value } from "../../engine/rows.ts";
import { ArrayEncoder, type ColumnType } from "./binary.ts";

const encode = (type: ColumnType, values: readonly Value[], encoder = new ArrayEncoder()) => encoder.encode(type, values, (value) => value);

/** Reads an array as PostgreSQL does. */
function elementsOf(array: Buffer): (Buffer | null)[] {
  expect([array.readInt32BE(0), array.readInt32BE(16)]).toEqual([1, 1]);
  const elements: (Buffer | null)[] = [];
  let at = 20;
  while (at < array.length) {
    const length = array.readInt32BE(at);
    elements.push(length === -1 ? null : array.subarray(at + 4, at + 4 + length));
    at += 4 + Math.max(0, length);
  }
  expect(elements).toHaveLength(array.readInt32BE(12));
  expect(array.readInt32BE(4)).toBe(elements.includes(null) ? 1 : 0);
  return elements;
}

describe("arrays in PostgreSQL's format", () => {
  it("contain texts, numbers, bytes and nulls unchanged", () => {
    expect(elementsOf(encode("text", ["ä", null, ""])).map((each) => each?.toString() ?? null)).toEqual(["ä", null, ""]);
    const numbers = elementsOf(encode("int8", [0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 32]));
    expect(numbers.map((each) => Number(each?.readBigInt64BE()))).toEqual([
      ...[0, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 32],
    ]);
    expect(elementsOf(encode("bytea", [new Uint8Array([0, 255])]))).toEqual([Buffer.from([0, 255])]);
  });

  it("are complete when the buffer becomes too small in the middle", () => {
    const encoder = new ArrayEncoder();
    const before = encode("text", ["before"], encoder);
    const texts = ["a", "b".repeat(20_000), null, "c".repeat(100_000), "d"];
    const grown = encode("text", texts, encoder);
    const after = encode("int8", [7], encoder);
    expect(elementsOf(before).map(String)).toEqual(["before"]);
    expect(elementsOf(grown).map((each) => each?.toString() ?? null)).toEqual(texts);
    expect(elementsOf(after).map((each) => Number(each?.readBigInt64BE()))).toEqual([7]);
  });

  it("of the next message reuse the buffer of the last one", () => {
    const encoder = new ArrayEncoder();
    const first = encode("text", ["first"], encoder);
    encoder.begin();
    const second = encode("text", ["later"], encoder);
    expect(second.byteOffset).toBe(first.byteOffset);
    expect(elementsOf(second).map(String)).toEqual(["later"]);
  });

  it("refuse a number that would be read as a different number", () => {
    expect(() => encode("int8", [2 ** 53])).toThrow("not a whole number");
    expect(() => encode("int8", [0.5])).toThrow("not a whole number");
  });
});
