// The attacker holds a read token for a server with very much data, and requests everything. No turn of the event loop may read more rows
// than the limit, for any request and any amount of data. The full size is in large-reads.faults.test.ts.

import { expect, it } from "vitest";
import { walkAllReads } from "./large-store.ts";

it("no request reads more rows in a turn of the event loop than allowed", async () => {
  const { reads, rows } = await walkAllReads({ runs: 10_000, lanes: 10_000, workers: 3_000 });
  expect(reads).toBeGreaterThan(60);
  expect(rows).toBeGreaterThan(100_000);
});
