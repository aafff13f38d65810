// The table of signals.

import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Column, RowStore, TableSpec } from "../rows.ts";
import type { Signal } from "../signal/signal.ts";

/** Columns that change when a step takes the signal. */
const taking: readonly Column<Signal>[] = [
  ["taken_at", ({ takenAt }) => takenAt],
  ["task_id", ({ taskId }) => taskId],
  ["attempt", ({ attempt }) => attempt],
  ["value", ({ value }) => value],
];

export const signalTable: TableSpec<Signal> = {
  name: "signal",
  key: ["run_id", "number"],
  columns: [
    ["run_id", ({ runId }) => runId],
    ["number", ({ number }) => number],
    ["name", ({ name }) => name],
    ["key", ({ key }) => key],
    ["sent_at", ({ sentAt }) => sentAt],
    ...taking,
  ],
  of: (row) => ({
    runId: row.run_id as string,
    number: row.number as number,
    name: row.name as string,
    key: row.key as string | null,
    value: row.value as string | null,
    sentAt: row.sent_at as number,
    takenAt: row.taken_at as number | null,
    taskId: row.task_id as string | null,
    attempt: row.attempt as number | null,
  }),
};

/** A signal without its value. */
export type SignalHead = Pick<Signal, "runId" | "number" | "name">;

export const signalHeadTable: TableSpec<SignalHead> = {
  name: "signal",
  key: ["run_id", "number"],
  columns: ["run_id", "number", "name"].map((column) => [column, () => null] as const),
  of: (row) => ({ runId: row.run_id as string, number: row.number as number, name: row.name as string }),
};

export function signalKey(runId: string, number: number): string {
  return `${runId}.${number}`;
}

export function signalRows(store: RowStore, commit: GroupCommit, committed: (signal: Signal) => void): Rows<Signal> {
  const rows = store.table(signalTable);
  const keyOf = (key: string) => {
    const dot = key.lastIndexOf(".");
    return [key.slice(0, dot), Number(key.slice(dot + 1))] as const;
  };
  return new Rows<Signal>(commit, {
    load: (tx, key) => rows.get(tx, ...keyOf(key)),
    save: (signal, isNew) => (isNew ? rows.insert([signal]) : rows.write(signal, taking)),
    remove: (key) => rows.remove([...keyOf(key)]),
    chars: ({ value }) => value?.length ?? 0,
    keep: () => "no",
    keptMax: 0,
    committed,
  });
}
