// The table of gates, and runs in the order in which they wait there.

import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableSpec } from "../rows.ts";
import type { Gate } from "../run/gate.ts";
import { numberOf } from "./number-of.ts";

/** Maximum number of gates in memory. Others are read when a run of theirs starts or ends. */
const keptMax = 10_000;

export const gateTable: TableSpec<Gate> = {
  name: "gate",
  key: ["name"],
  columns: [
    ["name", ({ name }) => name],
    ["state", ({ open, last, waiting, runs }) => JSON.stringify({ open, last, waiting, runs })],
  ],
  of: (row) => ({ name: row.name as string, ...(JSON.parse(row.state as string) as Omit<Gate, "name">) }),
};

export function gateRows(store: RowStore, commit: GroupCommit): Rows<Gate> {
  const rows = store.table(gateTable);
  return new Rows<Gate>(commit, {
    load: (tx, name) => rows.get(tx, name),
    save: (gate) => rows.write(gate),
    remove: (name) => rows.remove([name]),
    keep: () => "while-room",
    keptMax,
  });
}

export interface WaitingRun {
  readonly id: string;
  readonly turn: number;
}

export const waitingRunTable: TableSpec<WaitingRun> = {
  name: "run",
  key: ["id"],
  columns: ["id", "turn"].map((column) => [column, () => null] as const),
  of: (row) => ({ id: row.id as string, turn: numberOf(row, "turn") }),
};
