// Rows on PostgreSQL. No read is synchronous: the rows that a transaction needs are missing at first, and all of them are loaded with one message. The
// writes of a commit are one message as well.

import type { LongshoreError } from "../../core/errors.ts";
import { Missing } from "../../core/missing.ts";
import type { Row, RowStore, Scan, TableRows, TableSpec, Value } from "../../engine/rows.ts";
import type { ReadTx } from "../../engine/tx.ts";
import { boundsOf, limitOf, type SelectSql, selectSql, shapeOf } from "../scan-sql.ts";
import { storable, storableText } from "../storable-values.ts";
import { ArrayEncoder, type ColumnType, decode } from "./binary.ts";
import { hasUnstorableText } from "./errors.ts";
import type { Call } from "./link.ts";
import type { Owner } from "./owner.ts";
import type { RawRow } from "./package.ts";
import type { Catalog } from "./schema.ts";
import { spelling } from "./spelling.ts";
import type { Statements } from "./statements.ts";
import { tableWriter, typeOf } from "./table-writes.ts";
import { parameterOf, WriteBatch } from "./write-batch.ts";

export interface PostgresRowsDeps {
  readonly catalog: Catalog;
  readonly statements: Statements;
  /** Carries out the writes of a commit, all or none. */
  commit(calls: readonly Call[]): Promise<void>;
  /** Reads what is committed. */
  read(calls: readonly Call[]): Promise<RawRow[][]>;
  /** Reads the version of the data that the statements of a load see. Absent when all statements see the same version. */
  readonly versions?: Pick<Owner, "version" | "versionCall" | "versionOf">;
  isOwned(): boolean;
  isGone(): LongshoreError | null;
}

/** A character of a text takes at most three bytes, so a text has at least a third as many characters as bytes. */
const bytesPerChar = 3;

/** A read that is missing. All reads by key of one table share a statement; every other read has a separate statement. */
interface Read {
  /** The name under which its rows are put into `tx.loaded`. */
  readonly name: string;
  readonly get?: { readonly table: Gets; readonly key: readonly Value[] };
  readonly call?: Call;
  take(rows: RawRow[]): unknown;
}

/** Rows of one table by their keys. */
interface Gets {
  call(keys: readonly (readonly Value[])[]): Call;
}

export function postgresRows({ catalog, statements, commit, read, versions, isOwned, isGone }: PostgresRowsDeps): RowStore {
  const tables = new Map<unknown, TableRows<never>>();
  let batch: WriteBatch | null = null;
  // All commits share one encoder: a commit begins when the previous one has ended, and by then the previous parameters have been sent.
  const encoder = new ArrayEncoder();
  const current = (): WriteBatch => {
    if (batch === null) throw new Error("Rows are written in a commit only.");
    return batch;
  };
  return {
    table<R>(spec: TableSpec<R>): TableRows<R> {
      const known = tables.get(spec) as TableRows<R> | undefined;
      if (known !== undefined) return known;
      const types = catalog.get(spec.name);
      if (types === undefined) throw new Error(`There is no table ${spec.name}.`);
      const made: TableRows<R> = storable({
        ...tableReader(spec, types, statements, tables.size),
        ...tableWriter({ spec, types, statements, batch: current }),
      });
      tables.set(spec, made as TableRows<never>);
      return made;
    },
    async commit(write) {
      const own = new WriteBatch();
      batch = own;
      try {
        write();
      } finally {
        batch = null;
      }
      try {
        await commit(own.calls(encoder));
      } catch (error) {
        if (!hasUnstorableText(error)) throw error;
        await commit(own.calls(encoder, storableText));
      }
    },
    load: (tx, missing) => (tx.isOperation || versions === undefined ? load(tx, missing, read) : loadVersion(tx, missing, read, versions)),
    ...(versions === undefined ? {} : { version: () => versions.version() }),
    isOwned,
    isGone,
  };
}

function tableReader<R>(
  spec: TableSpec<R>,
  types: ReadonlyMap<string, ColumnType>,
  statements: Statements,
  id: number,
): Pick<TableRows<R>, "get" | "scan" | "total"> {
  const sql = selectSql(spec, spelling);
  const names = [...spec.columns.map(([column]) => column), ...(spec.sizes ?? []).map(([size]) => size)];
  const decoded = names.map((column) => [column, types.get(column) ?? "int8"] as const);
  const recordOf = (raw: RawRow, from = 0): R => {
    const row: { [column: string]: unknown } = {};
    for (const [at, [column, type]] of decoded.entries()) row[column] = decode(type, raw[at + from] ?? null);
    return spec.of(row as Row);
  };
  const gets = getsOf(spec, types, statements, names);
  const found = <T>(tx: ReadTx, reading: Read): T => {
    if (tx.loaded.has(reading.name)) return tx.loaded.get(reading.name) as T;
    throw new Missing(reading);
  };
  return {
    get: (tx, ...key) =>
      found(tx, {
        name: `${id} get ${key.join("\u0000")}`,
        get: { table: gets, key },
        take: ([row]) => (row === undefined ? null : recordOf(row, 1)),
      }),
    scan(tx, scan) {
      const name = `${id} scan ${JSON.stringify(scan)}`;
      if (tx.loaded.has(name)) return tx.loaded.get(name) as R[];
      const statement = statements.of(scan.enough === undefined ? sql.scan(scan) : boundedScan(sql, types, scan, names));
      const enough = scan.enough === undefined ? [] : [scan.enough.chars];
      const values = [...boundsOf(scan), ...limitOf(scan), ...enough].map(parameterOf);
      throw new Missing({ name, call: { statement, values }, take: (rows) => rows.map((row) => recordOf(row)) } satisfies Read);
    },
    total(tx, scan, of) {
      const call = () => ({ statement: statements.of(sql.total(scan, of)), values: boundsOf(scan).map(parameterOf) });
      return found(tx, {
        name: `${id} total ${of} ${shapeOf(scan)} ${JSON.stringify(boundsOf(scan))}`,
        call: call(),
        take: ([row]) => ({ rows: Number(row?.[0]), sum: Number(row?.[1]) }),
      });
    },
  };
}

/** A scan with `enough`: returns a row only while the sum of the rows before it is below the limit. */
function boundedScan(sql: SelectSql, types: ReadonlyMap<string, ColumnType>, scan: Scan, names: readonly string[]): string {
  const sizes = (scan.enough?.of ?? []).map((column) => {
    const type = types.get(column);
    if (type === undefined || type === "int8") return column;
    return type === "text" ? `coalesce(octet_length(${column}), 0) / ${bytesPerChar}` : `coalesce(octet_length(${column}), 0)`;
  });
  const sized = `SELECT *, sum(${sizes.join(" + ")}) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_it FROM (${sql.scan(scan)}) AS found`;
  return `SELECT ${names.join(", ")} FROM (${sized}) AS sized WHERE coalesce(before_it, 0) < ?`;
}

function getsOf<R>(spec: TableSpec<R>, types: ReadonlyMap<string, ColumnType>, statements: Statements, names: readonly string[]): Gets {
  const { name, key } = spec;
  const keyTypes = key.map((column) => typeOf(types, name, column));
  const sizes = new Map(spec.sizes ?? []);
  const read = names.map((column) => {
    const of = sizes.get(column);
    return of === undefined ? `found.${column}` : `(${of.map((each) => `coalesce(octet_length(found.${each}), 0)`).join(" + ")})`;
  });
  const wanted = `unnest(${keyTypes.map((type) => `?::${type}[]`).join(", ")}) WITH ORDINALITY AS wanted (${key.join(", ")}, place)`;
  const on = key.map((column) => `found.${column} = wanted.${column}`).join(" AND ");
  const text = `SELECT wanted.place, ${read.join(", ")} FROM ${wanted} JOIN ${name} AS found ON ${on}`;
  return {
    call(keys) {
      const encoder = new ArrayEncoder();
      const values = keyTypes.map((type, at) => encoder.encode(type, keys, (key) => key[at] as Value));
      return { statement: statements.of(text), values };
    },
  };
}

/**
 * Each statement sees the data that is committed when it begins. When the first and the last statement see the same version, all others see
 * it too. Loads of operations need no version, because nothing is committed between two batches.
 */
async function loadVersion(
  tx: ReadTx,
  missing: readonly Missing[],
  read: PostgresRowsDeps["read"],
  versions: NonNullable<PostgresRowsDeps["versions"]>,
): Promise<number | "torn"> {
  let version: number | "torn" = "torn";
  await load(tx, missing, async (calls) => {
    const [first = [], ...found] = await read([versions.versionCall(), ...calls, versions.versionCall()]);
    const [from, to] = [versions.versionOf(first), versions.versionOf(found.pop() ?? [])];
    version = from === to ? from : "torn";
    return found;
  });
  return version;
}

async function load(tx: ReadTx, missing: readonly Missing[], read: PostgresRowsDeps["read"]): Promise<undefined> {
  const wanted = new Map<string, Read>();
  for (const { read: each } of missing) wanted.set((each as Read).name, each as Read);
  const gets = new Map<Gets, Read[]>();
  const calls: Call[] = [];
  const takes: ((rows: RawRow[]) => void)[] = [];
  for (const each of wanted.values()) {
    if (each.get !== undefined) {
      const reads = gets.get(each.get.table);
      if (reads === undefined) gets.set(each.get.table, [each]);
      else reads.push(each);
    } else if (each.call !== undefined) {
      calls.push(each.call);
      takes.push((rows) => tx.loaded.set(each.name, each.take(rows)));
    }
  }
  for (const [table, reads] of gets) {
    calls.push(table.call(reads.map(({ get }) => get?.key ?? [])));
    takes.push((rows) => {
      const byPlace = new Map(rows.map((row) => [Number(row[0]), row]));
      for (const [at, each] of reads.entries()) tx.loaded.set(each.name, each.take(optional(byPlace.get(at + 1))));
    });
  }
  const rows = await read(calls);
  for (const [at, take] of takes.entries()) take(rows[at] ?? []);
}

function optional(row: RawRow | undefined): RawRow[] {
  return row === undefined ? [] : [row];
}
