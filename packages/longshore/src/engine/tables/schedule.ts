// The table of schedules. What a tick changes is in a few columns, so that a tick does not write the input again.

import { Rows, type RowsOptions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Column, RowStore, TableSpec } from "../rows.ts";
import { ownCharsOf, type Schedule, type ScheduleRules } from "../schedule/schedule.ts";

/** What is in the column `rules`, as JSON. */
type StoredRules = Omit<ScheduleRules, "workflow" | "input">;
/** What is in the column `state`, as JSON. */
type StoredState = Pick<Schedule, "lastAt" | "open" | "queued" | "backfill" | "history">;

const fixed: readonly Column<Schedule>[] = [
  ["name", ({ name }) => name],
  ["source", ({ source }) => source],
  ["workflow", ({ workflow }) => workflow],
  ["input", ({ input }) => input],
  ["rules", (row) => JSON.stringify(storedRules(row))],
  ["created_at", ({ createdAt }) => createdAt],
  ["updated_at", ({ updatedAt }) => updatedAt],
];
const changing: readonly Column<Schedule>[] = [
  ["paused", ({ paused }) => paused],
  ["next_at", ({ nextAt }) => nextAt],
  ["state", (row) => JSON.stringify(storedState(row))],
];

export const scheduleTable: TableSpec<Schedule> = {
  name: "schedule",
  key: ["name"],
  columns: [...fixed, ...changing],
  of: (row) => ({
    ...(JSON.parse(row.rules as string) as StoredRules),
    ...(JSON.parse(row.state as string) as StoredState),
    name: row.name as string,
    source: row.source as string | null,
    workflow: row.workflow as string,
    input: row.input as string,
    createdAt: row.created_at as number,
    updatedAt: row.updated_at as number,
    paused: row.paused as string | null,
    nextAt: row.next_at as number | null,
  }),
};

function storedRules({ when, tickField, overlap, queueMax, catchUp, catchUpMs, jitterMs, run }: Schedule): StoredRules {
  return { when, tickField, overlap, queueMax, catchUp, catchUpMs, jitterMs, ...(run === undefined ? {} : { run }) };
}

function storedState({ lastAt, open, queued, backfill, history }: Schedule): StoredState {
  return { lastAt, open, queued, backfill, history };
}

/** The texts of a schedule that may be long. */
export function scheduleChars({ input, run }: Pick<Schedule, "input" | "run">): number {
  return input.length + (run === undefined ? 0 : ownCharsOf(run));
}

/** Maximum number of schedules in memory. Others are read when they are due. */
const keptMax = 1_000;

type Hooks = Pick<RowsOptions<Schedule>, "committed" | "removed">;

export function scheduleRows(store: RowStore, commit: GroupCommit, hooks: Hooks): Rows<Schedule> {
  const rows = store.table(scheduleTable);
  return new Rows<Schedule>(commit, {
    load: (tx, name) => rows.get(tx, name),
    save: (row, isNew, before) => {
      if (!isNew && before?.updatedAt === row.updatedAt) rows.write(row, changing);
      else rows.write(row);
    },
    remove: (name) => rows.remove([name]),
    chars: ({ history, ...row }) => scheduleChars(row) + history.length * 200,
    keep: () => "while-room",
    keptMax,
    ...hooks,
  });
}
