// The rows that `longshore verify` reads in addition to runs and tasks, from any store: schedules, signals and start limits.

import { toError } from "../core/errors.ts";
import { Missing } from "../core/missing.ts";
import type { RowStore, TableSpec } from "../engine/rows.ts";
import type { Run } from "../engine/run/run.ts";
import { gateTable } from "../engine/tables/gate.ts";
import { scheduleTable } from "../engine/tables/schedule.ts";
import { signalTable } from "../engine/tables/signal.ts";
import type { ReadTx } from "../engine/tx.ts";
import { type Finding, finding } from "../verify/finding.ts";
import { checkGate, checkGatedRun, type GatedRun } from "../verify/gate-rules.ts";
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

const gatedTable: TableSpec<GatedRun> = {
  name: "run",
  key: ["id"],
  columns: ["id", "gate", "turn", "start_at", "ended_at"].map((column) => [column, () => null] as const),
  of: (row) => ({
    id: row.id as string,
    gate: row.gate as string | null,
    turn: row.turn as number | null,
    startAt: row.start_at as number | null,
    endedAt: row.ended_at as number | null,
  }),
};

export async function* checkRows(store: RowStore, read: Read): AsyncGenerator<Finding> {
  yield* checkSchedules(store, read);
  yield* checkSignalsOfRuns(store, read);
  yield* checkGates(store, read);
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

async function* checkGates(store: RowStore, read: Read): AsyncGenerator<Finding> {
  const [runs, gates] = [store.table(gatedTable), store.table(gateTable)];
  const waiting = new Map<string, number>();
  for (let after = ""; ; ) {
    const page = await read((tx) => [...runs.scan(tx, { by: ["id"], above: [after], limit: pageRows })]);
    for (const run of page) {
      const { gate, turn, endedAt } = run;
      if (gate === null || endedAt !== null) continue;
      if (turn !== null) waiting.set(gate, (waiting.get(gate) ?? 0) + 1);
      yield* await read((tx) => whole("limits-hold", run.id, () => checkGatedRun(run, gates.get(tx, gate))));
    }
    if (page.length < pageRows) break;
    after = page.at(-1)?.id as string;
  }
  for (let after = ""; ; ) {
    const page = await read((tx) => [...gates.scan(tx, { by: ["name"], above: [after], limit: pageRows })]);
    for (const gate of page) {
      const count = waiting.get(gate.name) ?? 0;
      yield* await read((tx) => whole("limits-hold", gate.name, () => checkGate(gate, (id) => runs.get(tx, id), count)));
    }
    if (page.length < pageRows) return;
    after = page.at(-1)?.name as string;
  }
}

/** A row that cannot be read is a finding, too. */
function whole(rule: "schedule-can-tick" | "signals-whole" | "limits-hold", subject: string, check: () => Finding[]): Finding[] {
  try {
    return check();
  } catch (error) {
    if (error instanceof Missing) throw error;
    return [finding(rule, subject, `its row cannot be read: ${toError(error).message}`)];
  }
}
