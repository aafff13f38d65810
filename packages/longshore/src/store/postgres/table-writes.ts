// How rows of one table are written: statements whose parameters are arrays, a column each.

import { type Column, isKey, type Scan, type TableSpec, type Value } from "../../engine/rows.ts";
import { boundsOf, conditionsOf } from "../scan-sql.ts";
import type { ColumnType } from "./binary.ts";
import type { Parameter } from "./package.ts";
import { spelling } from "./spelling.ts";
import type { Statements } from "./statements.ts";
import type { Shape, WriteBatch } from "./write-batch.ts";

export interface TableWritesDeps<R> {
  readonly spec: TableSpec<R>;
  readonly types: ReadonlyMap<string, ColumnType>;
  readonly statements: Statements;
  /** The batch of the commit at hand. Throws outside of one. */
  batch(): WriteBatch;
}

export interface TableWriter<R> {
  insert(records: readonly R[]): void;
  write(record: R, columns?: readonly Column<R>[]): void;
  remove(rows: readonly Value[] | Scan): void;
}

export function tableWriter<R>({ spec, types, statements, batch }: TableWritesDeps<R>): TableWriter<R> {
  const { name, key, columns } = spec;
  const names = columns.map(([column]) => column);
  const keyColumns = key.map((column) => columns.find(([each]) => each === column) as Column<R>);
  const keyOf = (record: R) => keyText(keyColumns.map(([, value]) => value(record)));
  const shape = (text: string, of: readonly string[], isInsert = false): Shape => ({
    ...{ table: name, isInsert, types: of.map((column) => typeOf(types, name, column)) },
    statement: statements.of(text),
  });
  const arrays = (of: readonly string[]) => `unnest(${of.map((column) => `?::${typeOf(types, name, column)}[]`).join(", ")})`;
  const rows = (of: readonly string[]) => `${arrays(of)} AS new (${of.join(", ")})`;
  const ofKey = key.map((column) => `old.${column} = new.${column}`).join(" AND ");
  const inserting = () => `INSERT INTO ${name} (${names.join(", ")}) SELECT * FROM ${arrays(names)}`;
  const lazily = (make: () => Shape) => {
    let made: Shape | undefined;
    return () => {
      made ??= make();
      return made;
    };
  };
  const insertShape = lazily(() => shape(inserting(), names, true));
  const upsertShape = lazily(() => {
    const changing = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
    const merging = changing.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${changing.join(", ")}`;
    return shape(`${inserting()} ON CONFLICT (${key.join(", ")}) ${merging}`, names);
  });
  const removeShape = lazily(() => shape(`DELETE FROM ${name} AS old USING ${rows(key)} WHERE ${ofKey}`, key));
  const updates = new Map<readonly Column<R>[], { shape: Shape; bound: readonly Column<R>[] }>();
  const updateOf = (changed: readonly Column<R>[]) => {
    const bound = [...changed, ...keyColumns];
    const setting = changed.map(([column]) => `${column} = new.${column}`).join(", ");
    const of = bound.map(([column]) => column);
    const update = { bound, shape: shape(`UPDATE ${name} AS old SET ${setting} FROM ${rows(of)} WHERE ${ofKey}`, of) };
    updates.set(changed, update);
    return update;
  };
  return {
    insert(records) {
      for (const record of records) batch().add(insertShape(), keyOf(record), valuesOf(columns, record));
    },
    write(record, changed) {
      if (changed === undefined) return batch().add(upsertShape(), keyOf(record), valuesOf(columns, record));
      const { shape: update, bound } = updates.get(changed) ?? updateOf(changed);
      batch().add(update, keyOf(record), valuesOf(bound, record));
    },
    remove(wanted) {
      if (isKey(wanted)) return batch().add(removeShape(), keyText(wanted), wanted);
      const statement = statements.of(`DELETE FROM ${name} ${conditionsOf(wanted, spelling)}`);
      batch().addAlone(name, { statement, values: boundsOf(wanted).map(parameterOf) });
    },
  };
}

export function typeOf(types: ReadonlyMap<string, ColumnType>, table: string, column: string): ColumnType {
  const type = types.get(column);
  if (type === undefined) throw new Error(`The table ${table} has no column ${column}.`);
  return type;
}

/** A value of a statement about few rows. */
export function parameterOf(value: Value): Parameter {
  if (value instanceof Uint8Array) return Buffer.from(value);
  return typeof value === "number" ? String(value) : value;
}

function keyText(values: readonly Value[]): string {
  return values.length === 1 ? String(values[0]) : values.join("\u0000");
}

function valuesOf<R>(columns: readonly Column<R>[], record: R): Value[] {
  return columns.map(([, value]) => value(record));
}
