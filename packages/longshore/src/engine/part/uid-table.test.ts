import { describe, expect, it } from "vitest";
import { hashOf, UidTable } from "./uid-table.ts";

describe("a table of uids", () => {
  it("finds every added entry of a large table, and nothing else", () => {
    const table = new UidTable();
    const count = 20_000;
    for (let at = 1; at <= count; at++) table.add(hashOf(`uid ${at}`), at);
    for (let at = 1; at <= count; at++) expect(table.find(hashOf(`uid ${at}`))).toContain(at);
    const strangers = Array.from({ length: count }, (_, at) => table.find(hashOf(`other ${at}`)).length);
    expect(strangers.reduce((sum, found) => sum + found)).toBeLessThan(5);
    expect(table.bytes).toBeLessThanOrEqual(count * 32);
  });

  it("gives every part whose uid has the same hash", () => {
    const table = new UidTable();
    for (const sequence of [1, 2, 3]) table.add(7, sequence);
    table.add(7 + 64, 4);
    expect([table.find(7), table.find(7 + 64), table.find(8)]).toEqual([[1, 2, 3], [4], []]);
  });

  it("does not find what was taken back, and finds all that was added around it", () => {
    const table = new UidTable();
    for (let at = 1; at <= 100; at++) table.add(7, at);
    for (let at = 2; at <= 100; at += 2) table.remove(7, at);
    const odd = Array.from({ length: 50 }, (_, at) => 2 * at + 1);
    expect(table.find(7)).toEqual(odd);
    for (let at = 101; at <= 1_000; at++) table.add(8, at);
    expect([table.find(7), table.find(8).length]).toEqual([odd, 900]);
  });

  it("computes the hashes that data files contain", () => {
    expect(["", "a", "part-1", "\u20ac"].map(hashOf)).toMatchInlineSnapshot(`
      [
        2872998923,
        444641715,
        954377680,
        3648786903,
      ]
    `);
  });
});
