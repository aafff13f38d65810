// Rows on SQLite: statements made from the description of a table, prepared once. SQLite reads at once, so nothing is ever missing.

import type { Column, Row, RowStore, Scan, TableRows, TableSpec, Value } from "../../engine/rows.ts";
import type { LongshoreError } from "../../errors.ts";
import { type Database, isUnavailable, type Statement } from "./driver.ts";

export function sqliteRows(db: Database, isGone: () => LongshoreError | null): RowStore {
  return {
    table: (spec) => tableRows(db, spec),
    commit: (write) => db.transaction(write),
    load: () => Promise.reject(new Error("SQLite misses no rows.")),
    isUnavailable,
    isGone,
  };
}

function tableRows<R>(db: Database, spec: TableSpec<R>): TableRows<R> {
  const { name, key, columns } = spec;
  const names = columns.map(([column]) => column);
  const ofKey = key.map((column) => `${column} = ?`).join(" AND ");
  const inserting = `INSERT INTO ${name} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`;
  const changing = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  const prepared = lazily(db);
  const select = prepared(`SELECT ${names.join(", ")} FROM ${name} WHERE ${ofKey}`);
  const insert = prepared(inserting);
  const upsert = prepared(`${inserting} ON CONFLICT (${key.join(", ")}) DO UPDATE SET ${changing.join(", ")}`);
  const remove = prepared(`DELETE FROM ${name} WHERE ${ofKey}`);
  const keyColumns = key.map((column) => columns.find(([each]) => each === column) as Column<R>);
  const scans = new Map<string, Statement>();
  const once = (sql: string): Statement => {
    const statement = scans.get(sql) ?? db.prepare(sql);
    scans.set(sql, statement);
    return statement;
  };
  return {
    get(...values) {
      const row = select().get(...values);
      return row === undefined ? null : spec.of(row);
    },
    *scan(scan) {
      const statement = once(`SELECT ${names.join(", ")} FROM ${name} ${conditions(scan)} ${orderOf(scan)}`);
      for (const row of statement.iterate(...boundsOf(scan), ...limitOf(scan))) yield spec.of(row as Row);
    },
    insert: (record) => void insert().run(...valuesOf(columns, record)),
    upsert: (record) => void upsert().run(...valuesOf(columns, record)),
    updater(changed) {
      const statement = db.prepare(`UPDATE ${name} SET ${changed.map(([column]) => `${column} = ?`).join(", ")} WHERE ${ofKey}`);
      const bound = [...changed, ...keyColumns];
      return (record) => void statement.run(...valuesOf(bound, record));
    },
    remove: (...values) => void remove().run(...values),
    removeAll: (scan) => void once(`DELETE FROM ${name} ${conditions(scan)}`).run(...boundsOf(scan)),
  };
}

/** Prepared when first used: a table is not read and written in every way. */
function lazily(db: Database): (sql: string) => () => Statement {
  return (sql) => {
    let statement: Statement | undefined;
    return () => {
      statement ??= db.prepare(sql);
      return statement;
    };
  };
}

/** Binding costs about 0.1 us a value: no copy of the list is made on the way. */
function valuesOf<R>(columns: readonly Column<R>[], record: R): Value[] {
  const values: Value[] = [];
  for (const [, value] of columns) values.push(value(record));
  return values;
}

function conditions({ by, equal = [], above, below, without }: Scan): string {
  const rest = by.slice(equal.length);
  const bound = (sign: string, values: readonly Value[]) =>
    `(${rest.slice(0, values.length).join(", ")}) ${sign} (${values.map(() => "?").join(", ")})`;
  const terms = [
    ...by.slice(0, equal.length).map((column) => `${column} = ?`),
    ...(without === undefined ? [] : [`${without} IS NULL`]),
    ...(above === undefined ? [] : [bound(">", above)]),
    ...(below === undefined ? [] : [bound("<", below)]),
  ];
  return terms.length === 0 ? "" : `WHERE ${terms.join(" AND ")}`;
}

function orderOf({ by, equal = [], backwards, limit }: Scan): string {
  const order = by.slice(equal.length).map((column) => (backwards ? `${column} DESC` : column));
  return `${order.length === 0 ? "" : `ORDER BY ${order.join(", ")}`} ${limit === undefined ? "" : "LIMIT ?"}`;
}

function boundsOf({ equal = [], above = [], below = [] }: Scan): Value[] {
  return [...equal, ...above, ...below];
}

function limitOf({ limit }: Scan): Value[] {
  return limit === undefined ? [] : [limit];
}
