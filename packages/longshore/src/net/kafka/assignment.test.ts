import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assign, decodeAssignment, decodeSubscription, encodeAssignment, encodeSubscription } from "./assignment.ts";

describe("the assignment of partitions", () => {
  it("gives one partition after the other to the members that subscribe to the topic", () => {
    const members = new Map([
      ["b", ["t", "u"]],
      ["a", ["t"]],
    ]);
    const assigned = assign(members, (topic) => (topic === "t" ? 3 : 2));
    expect([...assigned].map(([id, own]) => [id, Object.fromEntries(own)])).toEqual([
      ["a", { t: [0, 2] }],
      ["b", { t: [1], u: [0, 1] }],
    ]);
  });

  it("gives every partition to exactly one member, and the same number to each when all subscribe to the same topics", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 0, max: 20 }), (count, partitions) => {
        const members = new Map(Array.from({ length: count }, (_, at) => [`m${at}`, ["t"]]));
        const sizes = [...assign(members, () => partitions).values()].map((own) => own.get("t")?.length ?? 0);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(partitions);
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("reads what it has written", () => {
    expect(decodeSubscription(encodeSubscription(["cmd.a.v1", "ä"]))).toEqual(["cmd.a.v1", "ä"]);
    const assignment = new Map([["t", [0, 3]]]);
    expect(decodeAssignment(encodeAssignment(assignment))).toEqual({ assignment, leaderData: null });
    const leaderData = { counts: { t: 4 }, added: { t: 3 } };
    expect(decodeAssignment(encodeAssignment(assignment, leaderData))).toEqual({ assignment, leaderData });
    expect(decodeAssignment(Buffer.alloc(0))).toEqual({ assignment: new Map(), leaderData: null });
  });

  it("ignores additional data of foreign leaders", () => {
    const assignment = new Map([["t", [1]]]);
    const bare = encodeAssignment(assignment).subarray(0, -4);
    for (const data of ["", "sticky \u0000 bytes", "[1]", '{"counts":1}']) {
      const length = Buffer.alloc(4);
      length.writeInt32BE(Buffer.byteLength(data));
      expect(decodeAssignment(Buffer.concat([bare, length, Buffer.from(data)]))).toEqual({ assignment, leaderData: null });
    }
    // In version 0, some writers leave out the user data.
    expect(decodeAssignment(bare)).toEqual({ assignment, leaderData: null });
  });

  it("throws for lengths that the bytes cannot have, before it builds anything", () => {
    const bytes = (hex: string) => Buffer.from(hex.replaceAll(" ", ""), "hex");
    // A text with a length of -2 bytes would make the reader go back to this length.
    expect(() => decodeSubscription(bytes("0000 7fffffff fffe 0000000000000000"))).toThrow("a list has 2147483647 entries");
    expect(() => decodeSubscription(bytes("0000 00000002 fffe 0000000000000000"))).toThrow("a text has -2 bytes");
    expect(() => decodeSubscription(bytes("0000 00000001 7fff 61"))).toThrow("a text has 32767 bytes");
    expect(() => decodeAssignment(bytes("0000 00000001 0000 7fffffff"))).toThrow("a list has 2147483647 entries");
    expect(() => decodeAssignment(bytes("0000 00000002 0000 00000000 fffa 00000000"))).toThrow("a text has -6 bytes");
  });

  it("writes the bytes that other clients write", () => {
    // The bytes of aiokafka 0.14 for one topic `t`: version 0, topics, no user data.
    expect(encodeSubscription(["t"]).toString("hex")).toBe("00000000000100017400000000".replace(/00000000$/, "ffffffff"));
  });
});
