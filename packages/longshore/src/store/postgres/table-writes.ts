// Writes rows of one table, with statements whose parameters are one array for each column.

import { type Column, isKey, type Scan, type TableSpec, type Value } from "../../engine/rows.ts";
import { boundsOf, conditionsOf } from "../scan-sql.ts";
import type { ColumnType } from "./binary.ts";
import { spelling } from "./spelling.ts";
import type { Statements } from "./statements.ts";
import { type BoundColumn, parameterOf, type Shape, type WriteBatch } from "./write-batch.ts";

export interface TableWritesDeps<R> {
  readonly spec: TableSpec<R>;
  readonly types: ReadonlyMap<string, ColumnType>;
  readonly statements: Statements;
  /** The batch of the current commit. Throws when there is no commit. */
  batch(): WriteBatch;
}

export interface TableWriter<R> {
  insert(records: readonly R[]): void;
  write(record: R, columns?: readonly Column<R>[]): void;
  remove(rows: readonly Value[] | Scan): void;
}

export function tableWriter<R>({ spec, types, statements, batch }: TableWritesDeps<R>): TableWriter<R> {
  const { name, key, columns } = spec;
  const keyColumns = key.map((column) => columns.find(([each]) => each === column) as Column<R>);
  const keyOf = keyOfRecords(keyColumns);
  const { insert, upsert, update, remove } = writeSql(name, key, types);
  const shape = <T>(sql: WriteSql, of: readonly Column<T>[], isInsert = false): Shape<T> => ({
    ...{ table: name, isInsert, statement: statements.of(sql.rows), single: statements.of(sql.row) },
    columns: of.map(([column, value]): BoundColumn<T> => ({ type: typeOf(types, name, column), value })),
  });
  const insertShape = lazily(() => shape(insert(namesOf(columns)), columns, true));
  const upsertShape = lazily(() => shape(upsert(namesOf(columns)), columns));
  const keyValues = key.map((column, at): Column<readonly Value[]> => [column, (values) => values[at] as Value]);
  const removeShape = lazily(() => shape(remove(), keyValues));
  const updates = new Map<readonly Column<R>[], Shape<R>>();
  const updateShape = (changed: readonly Column<R>[]) => {
    const made = shape(update(namesOf(changed)), [...changed, ...keyColumns]);
    updates.set(changed, made);
    return made;
  };
  return {
    insert(records) {
      for (const record of records) batch().add(insertShape(), keyOf(record), record);
    },
    write(record, changed) {
      batch().add(changed === undefined ? upsertShape() : (updates.get(changed) ?? updateShape(changed)), keyOf(record), record);
    },
    remove(wanted) {
      if (isKey(wanted)) return batch().add(removeShape(), keyText(wanted), wanted);
      const statement = statements.of(`DELETE FROM ${name} ${conditionsOf(wanted, spelling)}`);
      batch().addAlone(name, { statement, values: boundsOf(wanted).map(parameterOf) });
    },
  };
}

/** A statement for one row, and one for many. For a single row, arrays cost more than they save. */
interface WriteSql {
  readonly row: string;
  readonly rows: string;
}

function writeSql(name: string, key: readonly string[], types: ReadonlyMap<string, ColumnType>) {
  const arrays = (of: readonly string[]) => `unnest(${of.map((column) => `?::${typeOf(types, name, column)}[]`).join(", ")})`;
  const rows = (of: readonly string[]) => `${arrays(of)} AS new (${of.join(", ")})`;
  const isNew = key.map((column) => `old.${column} = new.${column}`).join(" AND ");
  const isKeyOf = key.map((column) => `${column} = ?`).join(" AND ");
  const insert = (of: readonly string[]): WriteSql => ({
    row: `INSERT INTO ${name} (${of.join(", ")}) VALUES (${of.map(() => "?").join(", ")})`,
    rows: `INSERT INTO ${name} (${of.join(", ")}) SELECT * FROM ${arrays(of)}`,
  });
  return {
    insert,
    upsert(of: readonly string[]): WriteSql {
      const changing = of.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
      const merging = changing.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${changing.join(", ")}`;
      const inserting = insert(of);
      const on = `ON CONFLICT (${key.join(", ")}) ${merging}`;
      return { row: `${inserting.row} ${on}`, rows: `${inserting.rows} ${on}` };
    },
    update: (of: readonly string[]): WriteSql => ({
      row: `UPDATE ${name} SET ${of.map((column) => `${column} = ?`).join(", ")} WHERE ${isKeyOf}`,
      rows: `UPDATE ${name} AS old SET ${of.map((column) => `${column} = new.${column}`).join(", ")} FROM ${rows([...of, ...key])} WHERE ${isNew}`,
    }),
    remove: (): WriteSql => ({
      row: `DELETE FROM ${name} WHERE ${isKeyOf}`,
      rows: `DELETE FROM ${name} AS old USING ${rows(key)} WHERE ${isNew}`,
    }),
  };
}

function lazily<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

function namesOf<R>(columns: readonly Column<R>[]): string[] {
  return columns.map(([column]) => column);
}

export function typeOf(types: ReadonlyMap<string, ColumnType>, table: string, column: string): ColumnType {
  const type = types.get(column);
  if (type === undefined) throw new Error(`The table ${table} has no column ${column}.`);
  return type;
}

/** All rows of a table without a key get the same key here: such rows are only added, never changed. */
function keyOfRecords<R>(columns: readonly Column<R>[]): (record: R) => string {
  const [only] = columns;
  if (only !== undefined && columns.length === 1) return (record) => String(only[1](record));
  return (record) => keyText(columns.map(([, value]) => value(record)));
}

function keyText(values: readonly Value[]): string {
  return values.length === 1 ? String(values[0]) : values.join("\u0000");
}
