// Runs of any dialects on a real store, with a test clock: a server without its ports. It can be stopped and started on the same data.

import { onTestFinished } from "vitest";
import { idMaker } from "../../src/core/ids.ts";
import { Slices } from "../../src/core/slices/slices.ts";
import { Board } from "../../src/engine/board/board.ts";
import { farDeadlinePrefix } from "../../src/engine/board/local-deadlines.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { brainOf } from "../../src/engine/run/brain.ts";
import { Counts } from "../../src/engine/run/counts.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import type { Gate } from "../../src/engine/run/gate.ts";
import type { RunHistory } from "../../src/engine/run/history.ts";
import { LocalHistory } from "../../src/engine/run/local-history.ts";
import { LocalReader } from "../../src/engine/run/local-reader.ts";
import type { Plan } from "../../src/engine/run/plan.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { Runs } from "../../src/engine/run/runs.ts";
import type { Order } from "../../src/engine/run/store.ts";
import { gateTable } from "../../src/engine/tables/gate.ts";
import { runOf } from "../../src/engine/tables/run.ts";
import { taskOf } from "../../src/engine/tables/task.ts";
import type { ReadTx } from "../../src/engine/tx.ts";
import { reservedLanes } from "../../src/server/protocols.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { TestClock } from "../../src/testing/clock.ts";
import type { Finding } from "../../src/verify/finding.ts";
import { checkHistory } from "../../src/verify/verify.ts";
import { openSqliteStore } from "./sqlite-store.ts";

export type OrderKind = "pause" | "resume" | "cancel" | "retry" | "restart" | "rerun" | "skip";

export interface RunWorldOptions {
  readonly dialects: readonly Dialect[];
  /** Tasks of a run that one transaction ends or makes void. */
  readonly sliceTasks?: number;
  /** Called with the runs of each life of the server, before any message is carried. */
  readonly began?: (runs: Runs) => void;
}

/** Turns of the event loop within which all messages must have been carried out, and turns that a claim or a report needs. */
const [turnsMax, turnsMin] = [2_000, 20];

export type RunWorld = Awaited<ReturnType<typeof openRunWorld>>;

export async function openRunWorld({ dialects: known, sliceTasks, began }: RunWorldOptions) {
  const clock = new TestClock();
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const memory = await openDatabase(":memory:");
  const makeId = idMaker();
  const plans = new Map<string, Plan>();

  async function begin() {
    const store = await openSqliteStore({
      directory: null,
      clock,
      random: () => 0.5,
      brain: brainOf(dialects, { reserved: reservedLanes }),
      open: async () => ({ ...memory, close: () => {} }),
      sliceTasks,
      hooks: {
        deadline: (id, at) => board.deadline(id, at),
        taskChanged: (task) => board.changed(task),
        runChanged: (run) => runs.changed(run),
        messagesLeft: () => runs.carry(),
      },
    });
    const board = new Board({ store: store.board, clock, reserved: reservedLanes });
    board.onDeadline(farDeadlinePrefix, (name) => store.readDeadlines(name));
    const runs = new Runs({ store: store.runs, clock, makeId, dialects });
    began?.(runs);
    await store.recover();
    runs.carry();
    return { store, board, runs };
  }

  async function end({ store, board, runs }: Awaited<ReturnType<typeof begin>>): Promise<void> {
    board.close();
    await runs.close();
    await store.close();
  }

  let life = await begin();
  onTestFinished(async () => {
    await end(life);
    memory.close();
  });

  const everyRun = memory.prepare(`SELECT * FROM run ORDER BY id`);
  const everyGate = memory.prepare(`SELECT * FROM gate ORDER BY name`);
  const records = memory.prepare(`SELECT * FROM task WHERE id > ? AND id < ?`);
  const messages = memory.prepare("SELECT count(*) AS count FROM message");
  const definitions = memory.prepare("SELECT dialect, source FROM definition WHERE id = ?");

  function planOf({ definitionId }: Pick<Run, "definitionId">): Plan {
    const row = definitions.get(definitionId);
    const plan = plans.get(definitionId) ?? dialects.get(row?.dialect as string)?.compile(row?.source as string);
    if (plan === undefined) throw new Error(`There is no definition ${definitionId}.`);
    plans.set(definitionId, plan);
    return plan;
  }

  const tx: ReadTx = { isOperation: false, loaded: new Map() };
  const nodeOf = (_tx: ReadTx, definitionId: string, node: number) => planOf({ definitionId }).nodes[node];
  const history = new LocalHistory({ store: sqliteRows(memory, () => null), nodeOf, withParts: true });

  const world = {
    clock,
    planOf,
    get board(): Board {
      return life.board;
    },
    get runs(): Runs {
      return life.runs;
    },
    get store() {
      return life.store;
    },
    /** What the API reads. */
    reader(): LocalReader {
      const { rows, commit, board, runs } = life.store;
      return new LocalReader({
        ...{ store: rows, tasks: board.tasks, lanes: board.lanes, runs: runs.runs, definitions: runs.definitions },
        ...{ read: (work) => commit.read(work), counts: new Counts({ store: rows, commit }), slices: new Slices() },
      });
    },
    get parts() {
      return life.store.parts;
    },
    /** The server stops and starts again, on the same data. */
    async restart(): Promise<void> {
      await end(life);
      life = await begin();
      await world.settle();
    },
    /** The plan has no such step yet: the loop has not reached it. */
    async tell(id: string, kind: OrderKind, step = ""): Promise<void> {
      const node = planOf((await life.runs.run(id)) as Run).index.get(step) ?? -1;
      // The plan has no such step yet: a loop has not come so far.
      if (step !== "" && node < 0) return;
      const given = kind === "skip" ? { input: "{}", output: "{}" } : {};
      await life.runs.tell(id, { kind, ...(step === "" ? {} : { node, ...given }) } as Order);
      await world.settle();
    },
    /** The gates of start limits and debounced starts as they are stored. */
    gates: (): Gate[] => everyGate.all().map((row) => gateTable.of(row)),
    /** All runs as they are stored. */
    allRuns: (): Run[] => everyRun.all().map(runOf),
    /** Everything that is recorded about the steps of a run, in the order of their nodes. */
    rows: (runId: string): TaskRow[] =>
      records
        .all(`${runId}.`, `${runId}/`)
        .map((row) => life.store.board.tasks.newest({ isOperation: false, loaded: new Map() }, row.id as string, taskOf(row)) as TaskRow),
    /** What the published checker finds. */
    findings: (): Finding[] => history.runIds(tx, "").flatMap((id) => checkHistory(history.run(tx, id) as RunHistory)),
    /** Waits until every message between runs has been carried out. */
    async settle(): Promise<void> {
      for (let turn = 0; turn < turnsMin || (messages.get()?.count as number) > 0; turn++) {
        if (turn === turnsMax) throw new Error(`After ${turnsMax} turns there are messages between runs.`);
        await clock.advance(0);
      }
    },
    async poll(
      lane: string,
      { labels = [], termMs = 3_600_000 }: { labels?: string[]; termMs?: number } = {},
    ): Promise<TaskRow | undefined> {
      return (await life.board.claim({ reach: { names: [lane], labels }, serves: lane, holder: "worker", termMs }))[0];
    },
  };
  return world;
}
