// The full size of large-reads.test.ts.

import { expect, it } from "vitest";
import { walkAllReads } from "./large-store.ts";

it("no read of 100,000 runs, 100,000 lanes and 10,000 workers reads more rows in a turn than allowed", async () => {
  const { rows } = await walkAllReads({ runs: 100_000, lanes: 100_000, workers: 10_000 });
  expect(rows).toBeGreaterThan(1_000_000);
});
