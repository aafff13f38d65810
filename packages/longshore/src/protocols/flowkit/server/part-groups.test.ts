import { describe, expect, it } from "vitest";
import { partBytesMax, putPartsMax, uidLengthMax } from "../../../engine/part/store.ts";
import { partGroups, partUidOf } from "./part-groups.ts";

const sizes = (count: number, value: string) =>
  [...partGroups(Array.from({ length: count }, (_, index) => ({ uid: `b${index}`, value })))].map(({ length }) => length);

describe("batches as parts", () => {
  it("are stored in calls with as many parts as the store accepts", () => {
    expect(sizes(0, "{}")).toEqual([]);
    expect(sizes(putPartsMax + 1, "{}")).toEqual([putPartsMax, 1]);
  });

  it("are stored in calls with as much text as the store accepts", () => {
    expect(sizes(20, "x".repeat(partBytesMax / 8))).toEqual([8, 8, 4]);
  });

  it("have names that the store accepts", () => {
    expect(partUidOf("b1")).toBe("b1");
    expect(partUidOf("b\u00001")).toBe("b\uFFFD1");
    expect(partUidOf("x".repeat(1_000))).toHaveLength(uidLengthMax);
  });
});
