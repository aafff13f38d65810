// An engine whose store a test may look into.

import type { DataStore } from "../../src/server/data-store.ts";
import { type Engine, type EngineOptions, openEngine } from "../../src/server/engine.ts";
import type { Database } from "../../src/store/sqlite/driver.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";

export interface OpenEngine extends Engine {
  readonly store: DataStore & { readonly db: Database };
}

export async function openEngineWithStore(options: EngineOptions): Promise<OpenEngine> {
  let db: Database | undefined;
  let store: DataStore | undefined;
  const engine = await openEngine({
    ...options,
    async openStore(wanted) {
      const opened = await openSqlite(wanted);
      db = opened.db;
      return opened;
    },
    opened: (opened) => {
      store = opened;
    },
  });
  if (store === undefined || db === undefined) throw new Error("The engine has opened no store.");
  return Object.assign(engine, { store: { ...store, db } });
}
