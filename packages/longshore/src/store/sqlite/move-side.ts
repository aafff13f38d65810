// A data folder as one side of a migration. The lock of the folder keeps servers out.

import { randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { LongshoreError } from "../../core/errors.ts";
import type { Value } from "../../engine/rows.ts";
import { incompleteName, type Marks, placeProperties } from "../marks.ts";
import { byName, bytesOf, type ColumnKind, type MovedRow, type MovedTable, pageBytesMax, pageRowsMax, type Side } from "../move-side.ts";
import type { Database, SqlRow, SqlValue } from "./driver.ts";
import { dataFileName, lockFileName, prepareFolder } from "./folder.ts";
import { readFolderMarks, undoOf, writeFolderMark } from "./folder-marks.ts";
import { openSqlite } from "./store.ts";

const kinds: { readonly [type: string]: ColumnKind } = { TEXT: "text", INTEGER: "int8", BLOB: "bytea" };

/** `warn` receives messages for the operator about the folder. */
export async function openSourceFolder(directory: string, warn: (message: string) => void): Promise<Side> {
  if (!existsSync(join(directory, dataFileName)))
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `There is no data file in ${directory}. Name the data folder of a server.`);
  return sideOn(directory, warn);
}

/**
 * Refuses a folder that is not empty, except for one with the unfinished data of an earlier migration. The folder is marked before any data is written.
 */
export async function openTargetFolder(directory: string, from: string, warn: (message: string) => void): Promise<Side> {
  prepareFolder(directory, warn);
  const found = readdirSync(directory).filter((name) => name !== lockFileName);
  if (found.length > 0 && !found.includes(incompleteName))
    throw new LongshoreError(
      "LONGSHORE_BAD_CONFIG",
      `${directory} is not an empty folder. Name a folder that does not exist yet, or an empty one.`,
    );
  if (found.length === 0) writeFolderMark(directory, incompleteName, { id: randomUUID(), place: from, at: new Date().toISOString() });
  return sideOn(directory, warn);
}

async function sideOn(directory: string, warn: (message: string) => void): Promise<Side> {
  // Not every commit is synced: the migration syncs the file once, before it removes the mark.
  const { db, contents, close } = await openSqlite({ directory, warn, acceptMarked: true, synchronous: "NORMAL" });
  db.exec("PRAGMA foreign_keys=OFF");
  return {
    place: directory,
    undo: undoOf(directory),
    get marks(): Marks {
      return readFolderMarks(directory);
    },
    contents,
    tables: async () => tablesOf(db),
    count: async ({ name }) => Number(db.prepare(`SELECT count(*) AS rows FROM ${name}`).get()?.rows),
    pages: (table) => pagesOf(db, table),
    async clear(tables) {
      db.transaction(() => {
        for (const { name } of tables)
          if (name === "property")
            db.prepare(`DELETE FROM property WHERE name NOT IN (${placeProperties.map(() => "?")})`).run(...placeProperties);
          else db.exec(`DELETE FROM ${name}`);
      });
    },
    async insert({ name, columns }, rows) {
      const insert = db.prepare(`INSERT INTO ${name} (${columns.map((column) => column.name)}) VALUES (${columns.map(() => "?")})`);
      db.transaction(() => {
        for (const row of rows) insert.run(...(row as readonly SqlValue[]));
      });
    },
    async settle() {
      // The number of a log row is never used again, even when the row was removed.
      db.exec(`
        DELETE FROM sqlite_sequence WHERE name = 'log';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'log', max(
          coalesce((SELECT max(id) FROM log), 0), coalesce((SELECT value FROM amount WHERE name = 'last log'), 0)
        );
      `);
      db.exec("PRAGMA synchronous=FULL; PRAGMA wal_checkpoint(TRUNCATE)");
    },
    mark: async (name, mark) => writeFolderMark(directory, name, mark),
    close: async () => close(),
  };
}

function tablesOf(db: Database): MovedTable[] {
  const names = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name")
    .all();
  return names.map(({ name }) => {
    const info = db.prepare(`PRAGMA table_info(${name})`).all();
    const keys = info.filter(({ pk }) => Number(pk) > 0).sort((a, b) => Number(a.pk) - Number(b.pk));
    const columns = info.map((column) => ({ name: String(column.name), kind: kindOf(String(name), String(column.type)) }));
    return { name: String(name), columns: columns.sort(byName), key: keys.map((column) => String(column.name)) };
  });
}

function kindOf(table: string, type: string): ColumnKind {
  const kind = kinds[type];
  if (kind === undefined) throw new Error(`The table ${table} has a column of the type ${type}, which cannot be moved.`);
  return kind;
}

async function* pagesOf(db: Database, { name, columns, key }: MovedTable): AsyncGenerator<MovedRow[]> {
  const names = columns.map((column) => column.name);
  const place = key.length === 0 ? ["rowid"] : key;
  // A driver may cut a text at a NUL character, so SQLite itself searches for it.
  const texts = columns.filter(({ kind }) => kind === "text").map((column) => `coalesce(instr(CAST(${column.name} AS BLOB), x'00'), 0)`);
  const nul = texts.length === 0 ? "0" : texts.join(" + ");
  const select = `SELECT ${[...names, ...(key.length === 0 ? place : [])].join(", ")}, ${nul} AS has_nul FROM ${name}`;
  const order = `ORDER BY ${place.join(", ")} LIMIT ${pageRowsMax}`;
  const first = db.prepare(`${select} ${order}`);
  const next = db.prepare(`${select} WHERE (${place.join(", ")}) > (${place.map(() => "?").join(", ")}) ${order}`);
  for (let last: SqlRow | undefined; ; ) {
    const page: MovedRow[] = [];
    let bytes = 0;
    // No cursor stays open between pages: the driver for Node 20 does not keep the statement of one.
    for (const row of last === undefined ? first.iterate() : next.iterate(...place.map((column) => last?.[column] as SqlValue))) {
      if (row.has_nul !== 0)
        throw withNul(
          name,
          key.map((column) => row[column]),
        );
      const values = names.map((column) => row[column] as Value);
      page.push(values);
      bytes += bytesOf(values);
      last = row;
      if (bytes >= pageBytesMax) break;
    }
    if (page.length === 0) return;
    yield page;
  }
}

function withNul(table: string, key: readonly unknown[]): LongshoreError {
  const message = `A text in the row ${JSON.stringify(key)} of the table ${table} has a NUL character, which PostgreSQL cannot store. Remove the row first.`;
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message);
}
