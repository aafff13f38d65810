// An engine whose store a test may look into.

import type { SqliteStore } from "../../src/server/data-store.ts";
import { type Engine, type EngineOptions, openEngine } from "../../src/server/engine.ts";

export interface OpenEngine extends Engine {
  readonly store: SqliteStore;
}

export async function openEngineWithStore(options: EngineOptions): Promise<OpenEngine> {
  let store: SqliteStore | undefined;
  const engine = await openEngine({
    ...options,
    opened: (opened) => {
      store = opened;
    },
  });
  if (store === undefined) throw new Error("The engine has opened no store.");
  return Object.assign(engine, { store });
}
