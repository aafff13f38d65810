// Faults that are added to an engine, to check that the simulation finds them. They are mistakes that are possible when a commit or a message
// takes time.

import { isKey, type RowStore, type TableRows, type TableSpec } from "../../src/engine/rows.ts";
import { debouncePrefix } from "../../src/engine/run/gate.ts";
import type { ReadTx } from "../../src/engine/tx.ts";
import type { DataStore } from "../../src/server/data-store.ts";

export type Plant =
  /** A hold is renewed in memory during the commit of its end: the old row overwrites the new one. */
  | "renewal in the middle of a commit"
  /** Readers get rows that are not committed yet. */
  | "readers of uncommitted rows"
  /** The end of a child counts for its parent, although the child has begun a new life. */
  | "ends of an earlier life"
  /** The end of a parent's step cancels a child that has begun a new life. */
  | "cancels of an earlier life"
  /** An owner relies on its memory without a time limit. */
  | "endless trust"
  /** The columns that never change are not written again, although a further start replaces the input. */
  | "inputs that are replaced in memory alone"
  /** The row of debounced starts is not removed when their run begins or ends. */
  | "rows of debounced starts that stay"
  /** An owner takes back what it handed out over a link that broke, although the worker may have it (simulation-node.ts). */
  | "hand-outs that go back with their link";

export function planted({ commit, runs }: Pick<DataStore, "commit" | "runs">, plant: Plant): void {
  if (plant === "renewal in the middle of a commit") Object.defineProperty(commit, "isMemoryCurrent", { get: () => true });
  else if (plant === "readers of uncommitted rows") {
    const read = commit.read.bind(commit);
    const inside = (tx: ReadTx): ReadTx => ({ isOperation: true, loaded: tx.loaded });
    commit.read = (work) => read((tx) => work(inside(tx)));
  } else if (plant === "ends of an earlier life") forgetLife(runs, "settle-task");
  else if (plant === "cancels of an earlier life") forgetLife(runs, "cancel-child");
}

/** A message that names no life is carried out in any. */
function forgetLife(runs: DataStore["runs"], kind: "settle-task" | "cancel-child"): void {
  const deliver = runs.deliver.bind(runs);
  runs.deliver = ({ id, message }, child) =>
    deliver({ id, message: message.kind === kind ? { ...message, life: undefined } : message }, child);
}

export function plantedRows(rows: RowStore, plant: Plant): RowStore {
  return {
    ...rows,
    table: (spec) => {
      const table = rows.table(spec);
      if (plant === "inputs that are replaced in memory alone" && spec.name === "run")
        return { ...table, write: onceWithInput(spec, table) };
      if (plant === "rows of debounced starts that stay" && spec.name === "gate") return { ...table, remove: unlessDebounce(table) };
      return table;
    },
  };
}

function onceWithInput<R>({ columns }: TableSpec<R>, { write }: TableRows<R>): TableRows<R>["write"] {
  const others = columns.filter(([name]) => name !== "input");
  const written = new Set<string>();
  return (record, some) => {
    const { id } = record as { id: string };
    write(record, some ?? (written.has(id) ? others : undefined));
    written.add(id);
  };
}

function unlessDebounce<R>({ remove }: TableRows<R>): TableRows<R>["remove"] {
  return (rows) => {
    if (!isKey(rows) || !String(rows[0]).startsWith(debouncePrefix)) remove(rows);
  };
}
