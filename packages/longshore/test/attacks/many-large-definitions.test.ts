// The attacker may define workflows, and defines many of megabytes each, or holds a read token and reads them. Up to two thousand of them
// stayed in memory, with their compiled forms: 60 flows of 4 MB used 1.5 GB.

import { expect, it } from "vitest";
import { DefinitionCache } from "../../src/engine/run/definition-cache.ts";
import { openParts } from "../support/parts.ts";

const charsMax = 33_554_432;

it("definitions in memory have a limit in characters, and those in use stay", () => {
  const cache = new DefinitionCache<number>();
  const source = "x".repeat(4_000_000);
  cache.set("used", 0, { source: "small" });
  for (let at = 1; at <= 100; at++) {
    cache.set(`large${at}`, at, { source });
    expect(cache.get("used")).toBe(0);
  }
  expect(cache.weight).toBeLessThanOrEqual(charsMax);
  expect([cache.has("large1"), cache.has("large100")]).toEqual([false, true]);
});

it("definitions that are no longer in memory are read again", async () => {
  const { runs } = await openParts("memory");
  const { definitions } = runs;
  const large = (at: number) => ({
    id: `id${at}`,
    name: `n${at}`,
    dialect: "test",
    source: JSON.stringify([`${at}`.padEnd(1_000_000, "x")]),
  });
  for (let at = 0; at < 40; at++) await runs.define(large(at));
  expect(definitions.keptChars).toBeLessThanOrEqual(3 * charsMax);
  for (const at of [0, 39]) {
    expect(await runs.definitionById(`id${at}`)).toMatchObject(large(at));
    expect(await runs.definition(`n${at}`)).toMatchObject(large(at));
  }
});
