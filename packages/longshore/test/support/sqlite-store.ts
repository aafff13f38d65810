// The engine on SQLite, put together for tests that look into the data file.

import type { RowStore } from "../../src/engine/rows.ts";
import { type DataStore, type DataStoreOptions, openDataStore } from "../../src/server/data-store.ts";
import type { Database } from "../../src/store/sqlite/driver.ts";
import { openSqlite, type SqliteOptions } from "../../src/store/sqlite/store.ts";

export interface OpenSqliteStore extends DataStore {
  readonly db: Database;
}

export interface OpenSqliteStoreOptions extends SqliteOptions, DataStoreOptions {
  /** Replaces the rows, for example by some that are read later. */
  wrap?: (rows: RowStore) => RowStore;
}

export async function openSqliteStore(options: OpenSqliteStoreOptions): Promise<OpenSqliteStore> {
  const store = await openSqlite(options);
  const rows = options.wrap?.(store.rows) ?? store.rows;
  return { ...(await openDataStore({ ...store, rows }, options)), db: store.db };
}
