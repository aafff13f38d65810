// The parts of the SQLite store, put together for tests of the smaller ones: on a file that can be opened again, or in memory.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { idMaker, type MakeId } from "../../src/core/ids.ts";
import type { Json } from "../../src/core/json/json.ts";
import type { Quotas } from "../../src/core/quotas.ts";
import { LocalBoard } from "../../src/engine/board/local-board.ts";
import { ReservedLanes } from "../../src/engine/board/reserved-lanes.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { GroupCommit } from "../../src/engine/commit.ts";
import type { RowStore } from "../../src/engine/rows.ts";
import { Counts } from "../../src/engine/run/counts.ts";
import { decide } from "../../src/engine/run/decide.ts";
import type { Dialect } from "../../src/engine/run/dialect.ts";
import { LocalDocuments } from "../../src/engine/run/local-documents.ts";
import { LocalRuns } from "../../src/engine/run/local-runs.ts";
import { makePlan } from "../../src/engine/run/make-plan.ts";
import type { TaskNode } from "../../src/engine/run/plan.ts";
import { noRetry } from "../../src/engine/run/retry.ts";
import type { Run } from "../../src/engine/run/run.ts";
import { StoredBytes } from "../../src/engine/stored-bytes.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { missingRows } from "../contract/missing-rows.ts";

/** The last one is also a file, but each row is missing at its first read. */
export const places = ["a file", "memory", "rows that are read later"] as const;
export type Place = (typeof places)[number];

/** A folder that is removed when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Parts {
  clock: TestClock;
  folder: string;
  db: Awaited<ReturnType<typeof openDatabase>>;
  store: RowStore;
  commit: GroupCommit;
  stored: StoredBytes;
  board: LocalBoard;
  runs: LocalRuns;
  counts: Counts;
  makeId: MakeId;
  onTask: Set<(task: TaskRow) => void>;
  onRun: Set<(run: Run) => void>;
  /** Defines a workflow of these steps, each after the one before. */
  define(name: string, steps: readonly string[]): Promise<void>;
  start(workflow: string, options?: { id?: string; key?: string; alias?: string; input?: string }): Promise<Run>;
  /** Claims all queued tasks, as `holder`. */
  claim(holder?: string, lane?: string): Promise<TaskRow>;
  complete(task: TaskRow, output?: string): Promise<void>;
  fail(task: TaskRow, retryable?: boolean): Promise<void>;
  /** Starts a run and completes all its steps. */
  finish(workflow: string, options?: { key?: string; alias?: string }): Promise<Run>;
  close(): Promise<void>;
}

export async function openParts(place: Place, before?: Partial<Pick<Parts, "clock" | "folder">>, quotas?: Partial<Quotas>): Promise<Parts> {
  const clock = before?.clock ?? new TestClock();
  const folder = before?.folder ?? temporaryFolder();
  // These tests are not about power cuts, and waiting for the disk would take most of their time.
  const db = await openDatabase(place === "memory" ? ":memory:" : join(folder, "test.db"), { synchronous: "NORMAL" });
  migrate(db);
  const atHand = sqliteRows(db, () => null);
  const rows = place === "rows that are read later" ? missingRows(atHand) : atHand;
  const commit = new GroupCommit(rows, () => clock.now());
  const stored = new StoredBytes(rows, commit, quotas);
  const counts = new Counts({ store: rows, commit });
  const onTask = new Set<(task: TaskRow) => void>();
  const changed = (task: TaskRow) => {
    counts.taskChanged(task);
    for (const listener of onTask) listener(task);
  };
  const board = new LocalBoard({ store: rows, commit, stored, clock, random: () => 0.5, changed, deadline: () => {} });
  const plan = (definition: { source: string }) => chain.compile(definition.source);
  const brain = { plan, planInTurns: async (definition: { source: string }) => plan(definition), decide: decideChain };
  const onRun = new Set<(run: Run) => void>();
  const runChanged = (run: Run, before: Run | undefined) => {
    counts.runChanged(run, before);
    for (const listener of onRun) listener(run);
  };
  const runs = new LocalRuns({
    documents: new LocalDocuments({ store: rows, commit, clock, stored }),
    store: rows,
    commit,
    clock,
    random: () => 0.5,
    brain,
    board,
    changed: runChanged,
    deadline: () => {},
    left: () => {},
  });
  await counts.recover();
  await stored.recover();
  await board.recover();
  await runs.recover();
  const makeId = idMaker();
  let closed = false;
  const close = async () => {
    if (closed) return;
    closed = true;
    await commit.close();
    db.close();
  };
  onTestFinished(close);
  return {
    clock,
    folder,
    db,
    store: rows,
    commit,
    stored,
    board,
    runs,
    counts,
    makeId,
    onTask,
    onRun,
    close,
    ...verbs({ clock, board, runs, makeId }),
  };
}

type Verbs = "define" | "start" | "claim" | "complete" | "fail" | "finish";

function verbs({ clock, board, runs, makeId }: Pick<Parts, "clock" | "board" | "runs" | "makeId">): Pick<Parts, Verbs> {
  const parts: Pick<Parts, Verbs> = {
    async define(name, steps) {
      await runs.define({ id: makeId(clock.now()), name, dialect: "chain", source: JSON.stringify(steps) });
    },
    async start(workflow, options = {}) {
      const definition = await runs.definition(workflow);
      const started = await runs.start({ id: makeId(clock.now()), workflow, definitionId: definition!.id, input: "null", ...options });
      return started.run;
    },
    async claim(holder = "w1", lane = "work") {
      const { tasks } = await board.claim({ reach: { names: [lane], labels: [] }, holder, termMs: 30_000, max: 1 });
      if (tasks[0] === undefined) throw new Error("There is nothing to claim.");
      return tasks[0];
    },
    async complete(task, output = '{"ok":true}') {
      await board.settle({ verb: "complete", hold: { taskId: task.id, grant: task.grant }, output });
    },
    async fail(task, retryable = false) {
      await board.settle({ verb: "fail", hold: { taskId: task.id, grant: task.grant }, error: "it broke", retryable });
    },
    async finish(workflow, options) {
      const run = await parts.start(workflow, options);
      for (let now = run; now.endedAt === null; now = (await runs.run(run.id))!) await parts.complete(await parts.claim());
      return (await runs.run(run.id))!;
    },
  };
  return parts;
}

const chain: Dialect = {
  name: "chain",
  compile(source) {
    const steps = JSON.parse(source) as string[];
    const nodes = steps.map((id, at): TaskNode => {
      const lanes = [{ name: "work", labels: [] }];
      const after = at === 0 ? [] : [at - 1];
      return { kind: "task", id, input: null, after, waitsFor: "done", timeouts: {}, lanes, priority: 0, retry: noRetry, limits: [] };
    });
    return makePlan({ dialect: "chain", nodes, output: null });
  },
  resolve: (_plan, template) => ({ value: (template ?? null) as Json }),
};

const decideChain: ConstructorParameters<typeof LocalRuns>[0]["brain"]["decide"] = (plan, frontier, event) =>
  decide({ plan, dialect: chain, reserved: new ReservedLanes([]) }, frontier, event);
