// A schema of PostgreSQL as one side of a migration. The migration owns the data, so no server can use it meanwhile. If the migration hangs
// and a server takes over, the migration can write nothing more.

import { placeProperties } from "../marks.ts";
import { byName, type MovedRow, type MovedTable, pageBytesMax, pageRowsMax, type Side } from "../move-side.ts";
import { readAddress } from "./address.ts";
import { ArrayEncoder, decode } from "./binary.ts";
import { openDatabase, type PostgresDatabase, type Sql, undoOf } from "./database.ts";
import type { RawRow } from "./package.ts";
import { startError } from "./start-error.ts";
import { nodeName } from "./store.ts";

/** What is not copied as rows: the owner of the data, and the contents of blobs, which are copied separately. */
const ownTables: readonly string[] = ["meta", "shard", "node", "blob_chunk"];
const ownColumns: readonly string[] = ["shard"];

export async function openPostgresSide(url: string): Promise<Side> {
  const address = readAddress(url);
  try {
    const db = await openDatabase({ url, node: `migration on ${nodeName()}`, acceptMarked: true });
    return sideOn(db, address.shown, address.schema);
  } catch (error) {
    throw startError(error, address);
  }
}

function sideOn(db: PostgresDatabase, place: string, schema: string): Side {
  return {
    place,
    undo: undoOf(schema),
    marks: db.marks,
    contents: db.blobs,
    tables: () => tablesOf(db, schema),
    count: async ({ name }) => Number((await db.query(`SELECT count(*) FROM ${name}`))[0]?.[0]),
    pages: (table) => pagesOf(db, table),
    async clear(tables) {
      const emptied = tables.filter(({ name }) => name !== "property").map(({ name }) => name);
      const kept = placeProperties.map(() => "?").join(", ");
      await db.commit(
        [`TRUNCATE ${[...emptied, "blob_chunk"].join(", ")}`],
        [`DELETE FROM property WHERE name NOT IN (${kept})`, ...placeProperties],
      );
    },
    insert: (table, rows) => db.commit(insertOf(table, rows)),
    async settle(tables) {
      // A new table has no statistics until autovacuum has visited it.
      for (const { name } of tables) await db.commit([`ANALYZE ${name}`]);
    },
    mark: (name, mark) =>
      db.commit(
        ["DELETE FROM property WHERE name = ?", name],
        ...(mark === null ? [] : ([["INSERT INTO property (name, value) VALUES (?, ?)", name, JSON.stringify(mark)]] satisfies Sql[])),
      ),
    close: () => db.close(),
  };
}

async function tablesOf({ catalog, query }: PostgresDatabase, schema: string): Promise<MovedTable[]> {
  const keys = await query(
    `SELECT table_name, column_name FROM information_schema.table_constraints JOIN information_schema.key_column_usage
       USING (constraint_schema, constraint_name, table_schema, table_name)
     WHERE table_schema = ? AND constraint_type = 'PRIMARY KEY' ORDER BY ordinal_position`,
    schema,
  );
  return [...catalog]
    .filter(([name]) => !ownTables.includes(name))
    .map(([name, columns]) => ({
      name,
      columns: [...columns]
        .filter(([column]) => !ownColumns.includes(column))
        .map(([column, kind]) => ({ name: column, kind }))
        .sort(byName),
      key: keys.filter(([table]) => table === name).map(([, column]) => column as string),
    }))
    .sort(byName);
}

async function* pagesOf({ query }: PostgresDatabase, { name, columns, key }: MovedTable): AsyncGenerator<MovedRow[]> {
  // Rows without a key are identified by their place in the table. It does not change, because only the migration writes.
  const place = key.length === 0 ? ["ctid"] : key;
  const names = [...columns.map((column) => column.name), ...(key.length === 0 ? ["ctid"] : [])];
  const typeOf = (column: string) => columns.find((each) => each.name === column)?.kind ?? "tid";
  const order = place.join(", ");
  const size = columns.map(({ name: column, kind }) => (kind === "int8" ? "8" : `coalesce(octet_length(${column}), 0)`)).join(" + ");
  const text = (bound: string) => {
    const found = `SELECT ${names.join(", ")}, ${size} AS size FROM ${name} ${bound} ORDER BY ${order} LIMIT ${pageRowsMax}`;
    const sized = `SELECT *, sum(size) OVER (ORDER BY ${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_it FROM (${found}) AS found`;
    return `SELECT ${names.join(", ")} FROM (${sized}) AS sized WHERE coalesce(before_it, 0) < ${pageBytesMax} ORDER BY ${order}`;
  };
  const first = text("");
  const next = text(`WHERE (${order}) > (${place.map((column) => `?::${typeOf(column)}`).join(", ")})`);
  const at = place.map((column) => names.indexOf(column));
  for (let last: RawRow | undefined; ; ) {
    const rows: readonly RawRow[] =
      last === undefined ? await query(first) : await query(next, ...at.map((index) => last?.[index] ?? null));
    if (rows.length === 0) return;
    last = rows.at(-1);
    yield rows.map((row) => columns.map(({ kind }, index) => decode(kind, row[index] ?? null)));
  }
}

function insertOf({ name, columns }: MovedTable, rows: readonly MovedRow[]): Sql {
  const arrays = columns.map(({ kind }) => `?::${kind}[]`).join(", ");
  const encoder = new ArrayEncoder();
  const values = columns.map(({ kind }, at) => encoder.encode(kind, rows, (row) => row[at] ?? null));
  return [`INSERT INTO ${name} (${columns.map((column) => column.name).join(", ")}) SELECT * FROM unnest(${arrays})`, ...values];
}
