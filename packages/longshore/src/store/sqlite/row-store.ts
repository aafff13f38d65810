// Rows on SQLite: statements generated from the description of a table, prepared once. SQLite reads synchronously, so nothing is ever
// missing.

import { type LongshoreError, toError } from "../../core/errors.ts";
import {
  type Column,
  isKey,
  type Row,
  type RowStore,
  type TableRows,
  type TableSpec,
  Taken,
  Unavailable,
  type Value,
} from "../../engine/rows.ts";
import { boundsOf, conditionsOf, limitOf, matching, type Spelling, selectSql, shapeOf } from "../scan-sql.ts";
import { storable } from "../storable-values.ts";
import { type Database, isTaken, isUnavailable, type Statement } from "./driver.ts";

/** Maximum number of rows of one INSERT statement. With this many, each row takes 4.9 us, and alone 6.5 us. More rows make it no faster. */
const rowsAtOnce = 10;

/** A scan with at most this many rows is read at once: stepping through rows one by one costs more than reading a few unused ones. */
const fewRows = 10;

/** SQLite reads the left table of a cross join first. */
const spelling: Spelling = { join: "CROSS JOIN", find: "instr", using: (index) => `INDEXED BY ${index}` };

export function sqliteRows(db: Database, isGone: () => LongshoreError | null): RowStore {
  return {
    table: (spec) => storable(tableRows(db, spec)),
    commit(write) {
      try {
        db.transaction(write);
      } catch (thrown) {
        if (isUnavailable(thrown)) throw new Unavailable(toError(thrown));
        throw isTaken(thrown) ? new Taken(toError(thrown)) : thrown;
      }
    },
    // The lock of the folder lasts as long as the process.
    isOwned: () => true,
    load: () => Promise.reject(new Error("SQLite misses no rows.")),
    isGone,
  };
}

function tableRows<R>(db: Database, spec: TableSpec<R>): TableRows<R> {
  const { name, key, columns } = spec;
  const names = columns.map(([column]) => column);
  const sql = selectSql(spec, spelling);
  const ofKey = matching(key);
  const values = `(${names.map(() => "?").join(", ")})`;
  const inserting = `INSERT INTO ${name} (${names.join(", ")}) VALUES ${values}`;
  const changing = names.filter((column) => !key.includes(column)).map((column) => `${column} = excluded.${column}`);
  const prepared = lazily(db);
  const select = prepared(sql.get);
  const insert = prepared(inserting);
  const usual = usualInsert(spec);
  const insertUsual = prepared(usual.sql);
  const insertMany = prepared(`${inserting}${`, ${values}`.repeat(rowsAtOnce - 1)}`);
  const merging = changing.length === 0 ? "DO NOTHING" : `DO UPDATE SET ${changing.join(", ")}`;
  const upsert = prepared(`${inserting} ON CONFLICT (${key.join(", ")}) ${merging}`);
  const remove = prepared(`DELETE FROM ${name} WHERE ${ofKey}`);
  const keyColumns = key.map((column) => columns.find(([each]) => each === column) as Column<R>);
  const known = new Map<string, Statement>();
  const once = (shape: string, text: () => string): Statement => {
    const statement = known.get(shape) ?? db.prepare(text());
    known.set(shape, statement);
    return statement;
  };
  const updates = new Map<readonly Column<R>[], Update<R>>();
  const updateOf = (changed: readonly Column<R>[]): Update<R> => {
    const setting = changed.map(([column]) => `${column} = ?`).join(", ");
    const update = { statement: db.prepare(`UPDATE ${name} SET ${setting} WHERE ${ofKey}`), bound: [...changed, ...keyColumns] };
    updates.set(changed, update);
    return update;
  };
  return {
    get(_tx, ...bound) {
      const row = select().get(...bound);
      return row === undefined ? null : spec.of(row);
    },
    *scan(_tx, scan) {
      const statement = once(`scan ${shapeOf(scan)}`, () => sql.scan(scan));
      const bound = [...boundsOf(scan), ...limitOf(scan)];
      const rows = scan.limit !== undefined && scan.limit <= fewRows ? statement.all(...bound) : statement.iterate(...bound);
      for (const row of rows) yield spec.of(row as Row);
    },
    total(_tx, scan, column) {
      const statement = once(`total ${column} ${shapeOf(scan)}`, () => sql.total(scan, column));
      const row = statement.get(...boundsOf(scan));
      return { rows: Number(row?.rows), sum: Number(row?.sum) };
    },
    insert(records) {
      for (let from = 0; from < records.length; ) {
        const some = records.length - from >= rowsAtOnce ? rowsAtOnce : 1;
        if (some === 1 && usual.isUsual(records[from] as R)) {
          write(insertUsual(), valuesOf(usual.others, records[from++] as R));
          continue;
        }
        const bound: Value[] = [];
        for (const to = from + some; from < to; from++) addValues(bound, columns, records[from] as R);
        write((some === 1 ? insert : insertMany)(), bound);
      }
    },
    write(record, changed) {
      if (changed === undefined) return write(upsert(), valuesOf(columns, record));
      const { statement, bound } = updates.get(changed) ?? updateOf(changed);
      write(statement, valuesOf(bound, record));
    },
    remove(rows) {
      if (isKey(rows)) return write(remove(), rows);
      const statement = once(`remove ${shapeOf(rows)}`, () => `DELETE FROM ${name} ${conditionsOf(rows, spelling)}`);
      write(statement, boundsOf(rows));
    },
  };
}

/** The INSERT statement for rows in which the columns of `usual` have these values, and the columns whose values it gets. */
function usualInsert<R>({ name, columns, usual = {} }: TableSpec<R>) {
  const [set, others] = [columns.filter(([column]) => column in usual), columns.filter(([column]) => !(column in usual))];
  const expected = set.map(([column]) => usual[column] as null | number);
  const names = columns.map(([column]) => column).join(", ");
  const values = columns.map(([column]) => (column in usual ? String(usual[column]) : "?")).join(", ");
  return {
    sql: `INSERT INTO ${name} (${names}) VALUES (${values})`,
    others,
    isUsual(record: R): boolean {
      for (let at = 0; at < set.length; at++) if ((set[at] as Column<R>)[1](record) !== expected[at]) return false;
      return set.length > 0;
    },
  };
}

/** Writes some columns of an existing row. */
interface Update<R> {
  readonly statement: Statement;
  readonly bound: readonly Column<R>[];
}

/** `run` creates an object with two counts that no caller reads: 0.5 us of the 3 to 5 that a small statement takes. */
function write(statement: Statement, values: readonly Value[]): void {
  statement.get(...values);
}

/** Statements are prepared at their first use, because no table needs all of them. */
function lazily(db: Database): (sql: string) => () => Statement {
  return (sql) => {
    let statement: Statement | undefined;
    return () => {
      statement ??= db.prepare(sql);
      return statement;
    };
  };
}

/** The list of values is not copied, because binding takes only about 0.1 us a value. */
function valuesOf<R>(columns: readonly Column<R>[], record: R): Value[] {
  const values: Value[] = [];
  addValues(values, columns, record);
  return values;
}

/** A loop by index, because destructuring each column costs as much as its value. */
function addValues<R>(values: Value[], columns: readonly Column<R>[], record: R): void {
  for (let at = 0; at < columns.length; at++) values.push((columns[at] as Column<R>)[1](record));
}
