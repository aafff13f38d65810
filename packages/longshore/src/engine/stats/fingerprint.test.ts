import { expect, it } from "vitest";
import { fingerprint } from "./fingerprint.ts";

it.each([
  ["ECONNREFUSED 10.0.0.1:4500", "ECONNREFUSED #.#.#.#:#"],
  ["Order 01J9ZQ4X5N3T8B6V2C7D1E0F9G is gone.", "Order # is gone."],
  ["blob d9298a10d1b0735837dc4bd85dac641b is missing", "blob # is missing"],
  ["No field \"customer\" in 'a b'", "No field \"…\" in '…'"],
  ["can't read /var/lib/data.db: EIO", "can't read …/: EIO"],
  ["one line\n    at file.ts:1:2", "one line"],
  ["", ""],
  ["it's 5 o'clock", "it's # o'clock"],
])("the fingerprint of %j is %j", (error, expected) => {
  expect(fingerprint(error)).toBe(expected);
});

it("a long error costs no more than its beginning", () => {
  expect(fingerprint("x".repeat(10_000_000))).toHaveLength(200);
});
