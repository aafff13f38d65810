// The attacker holds a read token for a server that has stored very much, and asks for everything. No turn of the event loop may look at
// more rows than it may, whatever is asked and however much is stored. The full size is in large-reads.faults.test.ts.

import { expect, it } from "vitest";
import { walkAllReads } from "./large-store.ts";

it("no read looks at more rows at once than a turn of the event loop may", async () => {
  const { reads, rows } = await walkAllReads({ runs: 10_000, lanes: 10_000, workers: 3_000 });
  expect(reads).toBeGreaterThan(60);
  expect(rows).toBeGreaterThan(100_000);
});
