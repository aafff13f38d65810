import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Json } from "./json.ts";
import { JsonScan } from "./json-scan.ts";

/** Counts the values that a parser builds, including the names of members. */
function valuesIn(value: Json): number {
  if (typeof value !== "object" || value === null) return 1;
  const parts = Array.isArray(value) ? value : Object.values(value);
  const names = Array.isArray(value) ? 0 : parts.length;
  return parts.reduce<number>((sum, part) => sum + valuesIn(part), 1 + names);
}

function scan(bytes: Uint8Array, cuts: readonly number[] = []): number {
  const scanned = new JsonScan();
  let from = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    scanned.push(bytes.subarray(from, cut));
    from = cut;
  }
  return scanned.values;
}

describe("any JSON", () => {
  const text = fc.string({ unit: fc.constantFrom('"', "\\", "[", "{", ",", ":", "}", "é", "a", "\n"), maxLength: 8 });
  const json = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      fc.constantFrom<Json>(null, true, -1.5e3),
      text,
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(text, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value;

  it("has no more values than the scan counts, and not many fewer", () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 2), (value, indent) => {
        const counted = scan(Buffer.from(JSON.stringify(value, null, indent)));
        expect(counted).toBeGreaterThanOrEqual(valuesIn(value));
        expect(counted).toBeLessThanOrEqual(2 * valuesIn(value));
      }),
      { numRuns: 2_000 },
    );
  });

  it("counts the same for pieces of any size, valid or not", () => {
    const spoilt = fc.tuple(json, fc.nat(), fc.uint8Array({ maxLength: 2 })).map(([value, at, put]) => {
      const bytes = Buffer.from(JSON.stringify(value));
      const from = at % (bytes.length + 1);
      return Buffer.concat([bytes.subarray(0, from), Buffer.from(put), bytes.subarray(from + put.length)]);
    });
    fc.assert(
      fc.property(spoilt, fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => scan(bytes, cuts) === scan(bytes)),
      { numRuns: 2_000 },
    );
  });
});
