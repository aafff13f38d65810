// The SQLite store for the contract suite: in a file, or in memory.

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RowStore } from "../../src/engine/rows.ts";
import { type Database, openDatabase } from "../../src/store/sqlite/driver.ts";
import { openSqliteStore } from "../support/sqlite-store.ts";
import type { CommitProbe, StoreKind, StoreSetup } from "./world.ts";

async function open(setup: StoreSetup, wrap?: (rows: RowStore) => RowStore) {
  const { place, probe, ...rest } = setup;
  const store = await openSqliteStore({
    ...rest,
    directory: place,
    wrap,
    open: async (file, options) => probed(await openDatabase(file, options), probe),
  });
  return {
    board: store.board,
    runs: store.runs,
    parts: store.parts,
    signals: store.runs.signals,
    schedules: store.schedules,
    ticks: store.ticks,
    quiet: () => store.commit.quiet(),
    commits: () => store.commit.commits,
    recover: () => store.recover(),
    readDeadlines: (name: string) => store.readDeadlines(name),
    close: () => store.close(),
  };
}

/** A database that calls the probe at every commit. The caller of the transaction gets what the probe throws. */
function probed(db: Database, probe: CommitProbe): Database {
  return {
    ...db,
    transaction(work) {
      db.transaction(() => {
        work();
        probe.before?.();
      });
      probe.after?.();
    },
  };
}

export const sqliteMemory: StoreKind = {
  open: (setup) => open(setup),
  keeps: false,
  place: () => null,
  copy: () => {
    throw new Error("Memory cannot be copied.");
  },
};

/** Files in a folder that `clean` removes. */
export function sqliteFiles(wrap?: (rows: RowStore) => RowStore): StoreKind & { clean(): void } {
  const folder = mkdtempSync(join(tmpdir(), "longshore-contract-"));
  let places = 0;
  const place = () => join(folder, String(++places));
  return {
    open: (setup) => open(setup, wrap),
    keeps: true,
    place,
    copy(from) {
      const to = place();
      mkdirSync(to);
      for (const name of ["longshore.db", "longshore.db-wal"])
        if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
      return to;
    },
    clean: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** What SQLite's drivers throw when the disk is full. */
export function diskFull(): Error {
  return Object.assign(new Error("database or disk is full"), { code: "ERR_SQLITE_ERROR", errcode: 13 });
}
