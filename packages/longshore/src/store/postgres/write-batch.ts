// The writes of one commit, in as few statements as possible. Rows that are written in the same way become one statement with an array for
// each column. Writes with the same key keep their order.

import type { Value } from "../../engine/rows.ts";
import { type ArrayEncoder, type ColumnType, checkWhole } from "./binary.ts";
import type { Call, Statement } from "./link.ts";
import type { Parameter } from "./package.ts";

/** One way of writing rows of a table. */
export interface Shape<R> {
  readonly table: string;
  /** Its parameters are arrays, one for each column. */
  readonly statement: Statement;
  /** The same for one row: its parameters are values. */
  readonly single: Statement;
  readonly columns: readonly BoundColumn<R>[];
  /** Whether a second row with the same key is an error; otherwise the last one counts. */
  readonly isInsert: boolean;
}

export interface BoundColumn<R> {
  readonly type: ColumnType;
  value(record: R): Value;
}

interface Group {
  readonly shape: Shape<unknown>;
  /** The records that become rows. They do not change before the statements are made. */
  readonly records: unknown[];
  /** The position of the record of each key. */
  readonly places: Map<string, number>;
}

/** The statements of one table, in order. */
interface TableWrites {
  readonly steps: (Group | Call)[];
  /** The last group of each shape that rows may still join. */
  readonly open: Map<Shape<never>, number>;
  /** The last step that has written a key. */
  readonly written: Map<string, number>;
}

export class WriteBatch {
  readonly #tables = new Map<string, TableWrites>();

  add<R>(shape: Shape<R>, key: string, record: R): void {
    const { steps, open, written } = this.#of(shape.table);
    const last = written.get(key) ?? -1;
    let at = open.get(shape) ?? -1;
    if (at < last || at === -1) {
      at = steps.push({ shape: shape as Shape<unknown>, records: [], places: new Map() }) - 1;
      open.set(shape, at);
    }
    const { records, places } = steps[at] as Group;
    const place = shape.isInsert || last !== at ? undefined : places.get(key);
    if (place === undefined) {
      if (!shape.isInsert) places.set(key, records.length);
      records.push(record);
    } else records[place] = record;
    if (last !== at) written.set(key, at);
  }

  /** Adds a statement about many keys. Everything that was written before stays before it. */
  addAlone(table: string, call: Call): void {
    const { steps, open } = this.#of(table);
    steps.push(call);
    open.clear();
  }

  /** The parameters are in the encoder's buffer. `textOf` converts a text before it is written. Default: the text does not change. */
  calls(encoder: ArrayEncoder, textOf?: (text: string) => string): Call[] {
    const calls: Call[] = [];
    encoder.begin();
    for (const { steps } of this.#tables.values())
      for (const step of steps) calls.push("shape" in step ? callOf(textOf === undefined ? step : withTexts(step, textOf), encoder) : step);
    return calls;
  }

  #of(table: string): TableWrites {
    const known = this.#tables.get(table);
    if (known !== undefined) return known;
    const writes: TableWrites = { steps: [], open: new Map(), written: new Map() };
    this.#tables.set(table, writes);
    return writes;
  }
}

function withTexts({ shape, ...group }: Group, textOf: (text: string) => string): Group {
  const columns = shape.columns.map(({ type, value }): BoundColumn<unknown> => {
    const written = (record: unknown) => {
      const text = value(record);
      return typeof text === "string" ? textOf(text) : text;
    };
    return { type, value: written };
  });
  return { ...group, shape: { ...shape, columns } };
}

function callOf({ shape, records }: Group, encoder: ArrayEncoder): Call {
  const { columns, statement, single } = shape;
  if (records.length === 1) return { statement: single, values: columns.map(({ value }) => writtenParameter(value(records[0]))) };
  return { statement, values: columns.map(({ type, value }) => encoder.encode(type, records, value)) };
}

function writtenParameter(value: Value): Parameter {
  if (typeof value === "number") checkWhole(value);
  return parameterOf(value);
}

/** A value of a statement about few rows. */
export function parameterOf(value: Value): Parameter {
  if (value instanceof Uint8Array) return Buffer.from(value);
  return typeof value === "number" ? String(value) : value;
}
