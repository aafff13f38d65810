// Runs and tasks that have ended, in the order of their ends, without their data; and ids of those that were removed.

import type { Scan, TableSpec } from "../rows.ts";
import { plainTable } from "./plain-table.ts";

export interface Ended {
  readonly id: string;
  readonly endedAt: number;
}

/** What differs between runs and tasks. */
export interface EndedKind {
  readonly table: TableSpec<Ended>;
  /** The same with the bytes of inputs and outputs. */
  readonly sized: TableSpec<Ended & { readonly bytes: number }>;
  /** All of them, in the order of their ends. */
  readonly scan: Scan;
}

const by = ["ended_at", "id"];

function endedKind(name: "run" | "task", scan: Scan): EndedKind {
  const table: TableSpec<Ended> = {
    ...{ name, key: ["id"] },
    columns: [
      ["id", ({ id }) => id],
      ["ended_at", ({ endedAt }) => endedAt],
    ],
    of: (row) => ({ id: row.id as string, endedAt: row.ended_at as number }),
  };
  const sized: EndedKind["sized"] = {
    ...table,
    sizes: [["bytes", ["input", "output"]]],
    of: (row) => ({ ...table.of(row), bytes: row.bytes as number }),
  };
  return { table, sized, scan };
}

export const endedRuns: EndedKind = endedKind("run", { by, having: "ended_at" });
/** Tasks that belong to no run. */
export const endedTasks: EndedKind = endedKind("task", { by, having: "ended_at", without: "run_id" });

/** A run or a task that was removed, while some of its rows are left in other tables. */
export const prunedTable = plainTable<{ readonly id: string }>("pruned", ["id"], { id: "id" });

/** Values about the data as a whole, by name. */
export interface Property {
  readonly name: string;
  readonly value: string;
}

export const propertyTable = plainTable<Property>("property", ["name"], { name: "name", value: "value" });
