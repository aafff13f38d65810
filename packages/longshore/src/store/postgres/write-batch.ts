// The writes of one commit, gathered into as few statements as keep their order: rows that are written in the same way become one statement with
// an array for each column. Rows of one key keep the order in which they were written; between others, order makes no difference.

import type { Value } from "../../engine/rows.ts";
import { type ColumnType, encodeArray } from "./binary.ts";
import type { Call, Statement } from "./link.ts";

/** One way of writing rows of a table. */
export interface Shape {
  readonly table: string;
  readonly statement: Statement;
  readonly types: readonly ColumnType[];
  /** Whether a second row with the same key is an error; otherwise the last one counts. */
  readonly isInsert: boolean;
}

interface Group {
  readonly shape: Shape;
  readonly columns: Value[][];
  /** Where the row of a key is. */
  readonly places: Map<string, number>;
}

/** The statements of one table, in order. */
interface TableWrites {
  readonly steps: (Group | Call)[];
  /** The last group of each shape that rows may still join. */
  readonly open: Map<Shape, number>;
  /** The last step that has written a key. */
  readonly written: Map<string, number>;
}

export class WriteBatch {
  readonly #tables = new Map<string, TableWrites>();

  add(shape: Shape, key: string, values: readonly Value[]): void {
    const writes = this.#of(shape.table);
    const { steps, open, written } = writes;
    const last = written.get(key) ?? -1;
    let at = open.get(shape) ?? -1;
    if (at < last || at === -1) {
      at = steps.push({ shape, columns: shape.types.map(() => []), places: new Map() }) - 1;
      open.set(shape, at);
    }
    const group = steps[at] as Group;
    const place = shape.isInsert ? undefined : group.places.get(key);
    if (place === undefined) {
      group.places.set(key, group.columns[0]?.length ?? 0);
      for (const [column, value] of values.entries()) group.columns[column]?.push(value);
    } else for (const [column, value] of values.entries()) (group.columns[column] as Value[])[place] = value;
    written.set(key, at);
  }

  /** A statement about many keys: what was written before it comes before it. */
  addAlone(table: string, call: Call): void {
    const { steps, open } = this.#of(table);
    steps.push(call);
    open.clear();
  }

  calls(): Call[] {
    const calls: Call[] = [];
    for (const { steps } of this.#tables.values()) for (const step of steps) calls.push("shape" in step ? callOf(step) : step);
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

function callOf({ shape, columns }: Group): Call {
  return { statement: shape.statement, values: columns.map((values, at) => encodeArray(shape.types[at] as ColumnType, values)) };
}
