// Replaces store/sqlite/row-store.ts when tests run with LONGSHORE_TEST_ROWS=later (vitest.config.ts). No row is at hand, and each commit
// takes some turns of the event loop.

import type { LongshoreError } from "../../src/core/errors.ts";
import type { RowStore } from "../../src/engine/rows.ts";
import type { Database } from "../../src/store/sqlite/driver.ts";
import { sqliteRows as rowsAtHand } from "../../src/store/sqlite/row-store.ts";
import { missingRows } from "../contract/missing-rows.ts";

export function sqliteRows(db: Database, isGone: () => LongshoreError | null): RowStore {
  return missingRows(rowsAtHand(db, isGone));
}
