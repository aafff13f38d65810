import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import type { RowStore } from "../../src/engine/rows.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { temporaryFolder } from "../support/parts.ts";
import { missingRows } from "./missing-rows.ts";
import { type OpenedRows, rowsContract } from "./rows.ts";

async function openFile(file: string, wrap: (rows: RowStore) => RowStore = (rows) => rows): Promise<OpenedRows> {
  const db = await openDatabase(file, { synchronous: "NORMAL" });
  migrate(db);
  const rows = wrap(sqliteRows(db, () => null));
  // The files as they are now, without the changes of closing them.
  const crash = async () => {
    const copy = join(temporaryFolder(), "copy.db");
    for (const end of ["", "-wal"]) if (existsSync(`${file}${end}`)) copyFileSync(`${file}${end}`, `${copy}${end}`);
    return openFile(copy, wrap);
  };
  return { rows, crash: file === ":memory:" ? null : crash, close: () => db.close() };
}

rowsContract("rows of SQLite in a file", () => openFile(join(temporaryFolder(), "rows.db")));
rowsContract("rows of SQLite in memory", () => openFile(":memory:"));
rowsContract("rows that are missing at every first read", () => openFile(join(temporaryFolder(), "rows.db"), (rows) => missingRows(rows)));
