// Data in PostgreSQL as the source for `longshore verify`, as they were at one moment. Nothing is changed, and a server may run meanwhile.

import { openSnapshot, type PostgresSnapshot } from "../store/postgres/snapshot.ts";
import { type Finding, finding } from "../verify/finding.ts";
import type { HistorySource } from "../verify/verify.ts";
import { historySource } from "./history-source.ts";
import { plainDialects } from "./protocols.ts";

export async function openStoredData(url: string): Promise<{ source: HistorySource; close(): Promise<void> }> {
  const dialects = await plainDialects();
  const snapshot = await openSnapshot(url);
  return { source: historySource(snapshot.rows, dialects, () => checkBlobs(snapshot)), close: () => snapshot.close() };
}

async function* checkBlobs(snapshot: PostgresSnapshot): AsyncGenerator<Finding> {
  for await (const { hash, bytes, found } of snapshot.blobs()) {
    if (found === bytes) continue;
    const what = found === null ? "its content is missing" : `its content has ${found} bytes`;
    yield finding("blob-whole", hash, `${bytes} bytes of it were acknowledged and ${what}`, `blob_chunk ${hash}`);
  }
}
