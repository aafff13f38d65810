import { describe, expect, it } from "vitest";
import { ArrayEncoder } from "./binary.ts";
import { type Shape, WriteBatch } from "./write-batch.ts";

interface Item {
  readonly id: string;
  readonly size: number;
}

const shape = (name: string, isInsert = false): Shape<Item> => ({
  ...{ table: "item", isInsert, statement: { name: `${name} rows`, text: "" }, single: { name: `${name} row`, text: "" } },
  columns: [
    { type: "text", value: ({ id }) => id },
    { type: "int8", value: ({ size }) => size },
  ],
});
const inserting = shape("insert", true);
const updating = shape("update");

function written(...writes: readonly (readonly [Shape<Item>, Item])[]) {
  const batch = new WriteBatch();
  for (const [how, item] of writes) batch.add(how, item.id, item);
  return batch.calls(new ArrayEncoder());
}

describe("the writes of a commit", () => {
  it("of one row are a statement with plain values", () => {
    expect(written([inserting, { id: "a", size: 1 }])).toEqual([{ statement: inserting.single, values: ["a", "1"] }]);
  });

  it("of several rows are one statement with an array for each column", () => {
    const [call, ...others] = written([inserting, { id: "a", size: 1 }], [inserting, { id: "b", size: 2 }]);
    expect(others).toEqual([]);
    expect(call?.statement).toBe(inserting.statement);
    expect(call?.values.map((each) => (each as Buffer).readInt32BE(12))).toEqual([2, 2]);
  });

  it("have the last of several versions of a row", () => {
    expect(written([updating, { id: "a", size: 1 }], [updating, { id: "a", size: 2 }])).toEqual([
      { statement: updating.single, values: ["a", "2"] },
    ]);
  });

  it("contain a row twice that is inserted twice, and PostgreSQL refuses it", () => {
    expect(written([inserting, { id: "a", size: 1 }], [inserting, { id: "a", size: 2 }])[0]?.statement).toBe(inserting.statement);
  });

  it("keep the order of the writes of one row", () => {
    const calls = written([updating, { id: "a", size: 1 }], [inserting, { id: "a", size: 2 }], [updating, { id: "a", size: 3 }]);
    expect(calls.map(({ values }) => values[1])).toEqual(["1", "2", "3"]);
  });

  it("of one row refuse a number that would be read as a different number", () => {
    expect(() => written([inserting, { id: "a", size: 2 ** 53 }])).toThrow("not a whole number");
  });
});
