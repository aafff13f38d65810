// The digest of 64 bytes is held against Node's own; that its length is part of the hash, against the vectors in hash.test.ts.
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { blake2b, moduleBytes } from "./blake2b.ts";

const nodes = (message: Uint8Array): string => createHash("blake2b512").update(message).digest("hex");

it("the module is the same to the byte on every build: the reviewed code is what runs", () => {
  expect(createHash("sha256").update(moduleBytes()).digest("hex")).toBe("a519ff49b70e620bca7238ab1c95b1771305c0f98997172079db559ebb6761e1");
});

describe("BLAKE2b", () => {
  it.each([0, 1, 127, 128, 129, 255, 256, 257, 10_000])("of %i bytes is what Node computes", (length) => {
    const message = Uint8Array.from({ length }, (_, at) => at * 7);
    expect(blake2b(message, 64)).toBe(nodes(message));
  });

  it("of any bytes is what Node computes, after any earlier input", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (message) => blake2b(message, 64) === nodes(message)));
  });

  it("of another length is another hash", () => {
    const message = Buffer.from("abc");
    expect(blake2b(message, 20)).toBe("384264f676f39536840523f284921cdc68b6846b");
    expect(blake2b(message, 64).startsWith(blake2b(message, 20))).toBe(false);
  });
});
