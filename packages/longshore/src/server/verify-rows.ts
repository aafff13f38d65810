// The rows that `longshore verify` reads in addition to runs and tasks, from any store: schedules and signals.

import { toError } from "../core/errors.ts";
import { Missing } from "../core/missing.ts";
import type { RowStore, TableSpec } from "../engine/rows.ts";
import type { Run } from "../engine/run/run.ts";
import { scheduleTable } from "../engine/tables/schedule.ts";
import { signalTable } from "../engine/tables/signal.ts";
import type { ReadTx } from "../engine/tx.ts";
import { type Finding, finding } from "../verify/finding.ts";
import { checkSchedule } from "../verify/schedule-rules.ts";
import { checkSignals } from "../verify/signal-rules.ts";

type Read = <T>(work: (tx: ReadTx) => T) => Promise<T>;

/** Rows that are read at a time. */
const pageRows = 100;

const nameTable: TableSpec<string> = { name: "schedule", key: ["name"], columns: [["name", () => null]], of: (row) => row.name as string };

type SignalledRun = Pick<Run, "id" | "signals">;
const signalledTable: TableSpec<SignalledRun> = {
  name: "run",
  key: ["id"],
  columns: ["id", "signals"].map((column) => [column, () => null] as const),
  of: (row) => ({ id: row.id as string, signals: row.signals as string | null }),
};

export async function* checkRows(store: RowStore, read: Read): AsyncGenerator<Finding> {
  yield* checkSchedules(store, read);
  yield* checkSignalsOfRuns(store, read);
}

async function* checkSchedules(store: RowStore, read: Read): AsyncGenerator<Finding> {
  const [names, schedules] = [store.table(nameTable), store.table(scheduleTable)];
  for (let after = ""; ; ) {
    const page = await read((tx) => [...names.scan(tx, { by: ["name"], above: [after], limit: pageRows })]);
    for (const name of page) yield* await read((tx) => whole("schedule-can-tick", name, () => checkSchedule(schedules.get(tx, name))));
    if (page.length < pageRows) return;
    after = page.at(-1) as string;
  }
}

async function* checkSignalsOfRuns(store: RowStore, read: Read): AsyncGenerator<Finding> {
  const [runs, signals] = [store.table(signalledTable), store.table(signalTable)];
  for (let after = ""; ; ) {
    const page = await read((tx) => [...runs.scan(tx, { by: ["id"], above: [after], limit: pageRows })]);
    for (const run of page.filter((each) => each.signals !== null)) {
      const scan = { by: ["run_id", "number"], equal: [run.id] };
      yield* await read((tx) => whole("signals-whole", run.id, () => checkSignals(run, [...signals.scan(tx, scan)])));
    }
    if (page.length < pageRows) return;
    after = page.at(-1)?.id as string;
  }
}

/** A row that cannot be read is a finding, too. */
function whole(rule: "schedule-can-tick" | "signals-whole", subject: string, check: () => Finding[]): Finding[] {
  try {
    return check();
  } catch (error) {
    if (error instanceof Missing) throw error;
    return [finding(rule, subject, `its row cannot be read: ${toError(error).message}`)];
  }
}
