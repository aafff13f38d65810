// The digest of 64 bytes is compared with Node's own. The vectors in hash.test.ts show that the length is part of the hash.
import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { blake2b, moduleBytes } from "./blake2b.ts";

const nodes = (message: Uint8Array): string => createHash("blake2b512").update(message).digest("hex");

it("every build gives exactly the same module, so the reviewed code is the code that runs", () => {
  expect(createHash("sha256").update(moduleBytes()).digest("hex")).toBe("a519ff49b70e620bca7238ab1c95b1771305c0f98997172079db559ebb6761e1");
});

describe("BLAKE2b", () => {
  it.each([0, 1, 127, 128, 129, 255, 256, 257, 10_000])("of %i bytes is the same as Node's", (length) => {
    const message = Uint8Array.from({ length }, (_, at) => at * 7);
    expect(blake2b(message, 64)).toBe(nodes(message));
  });

  it("of any bytes is the same as Node's, after any earlier input", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (message) => blake2b(message, 64) === nodes(message)));
  });

  it("with another length is a different hash", () => {
    const message = Buffer.from("abc");
    expect(blake2b(message, 20)).toBe("384264f676f39536840523f284921cdc68b6846b");
    expect(blake2b(message, 64).startsWith(blake2b(message, 20))).toBe(false);
  });
});
