// Builds board, runs, documents and parts on the rows of a store.

import type { Clock } from "../core/clock.ts";
import type { Orderer } from "../core/orderer.ts";
import type { Quotas } from "../core/quotas.ts";
import type { TrackedRequest } from "../core/request-ids.ts";
import type { Slices } from "../core/slices/slices.ts";
import { LocalAudit } from "../engine/audit/local-audit.ts";
import { firstGrant } from "../engine/board/first-grant.ts";
import { LocalBoard } from "../engine/board/local-board.ts";
import type { TaskRow } from "../engine/board/task.ts";
import type { WorkListener } from "../engine/board/work-listener.ts";
import { GroupCommit } from "../engine/commit.ts";
import { LocalEvents } from "../engine/event/local-events.ts";
import { LocalParts } from "../engine/part/local-parts.ts";
import { Performed } from "../engine/request-marks.ts";
import type { RowStore } from "../engine/rows.ts";
import { LocalDocuments } from "../engine/run/local-documents.ts";
import { LocalRuns } from "../engine/run/local-runs.ts";
import type { Run } from "../engine/run/run.ts";
import type { Brain } from "../engine/run/store.ts";
import { LocalSchedules } from "../engine/schedule/local-schedules.ts";
import { LocalTicks, type LocalTicksDeps } from "../engine/schedule/local-ticks.ts";
import type { Store } from "../engine/store.ts";
import { StoredBytes } from "../engine/stored-bytes.ts";

/** Called after each commit. These are hints for waiters and views: correctness never depends on them. */
export interface StoreHooks {
  /** The next time at which something is due for `id`; null for never. */
  deadline(id: string, at: number | null): void;
  taskChanged(task: TaskRow): void;
  /** `before`: the run as the last commit left it; undefined for a new one. */
  runChanged(run: Run, before: Run | undefined): void;
  /** A run that had ended has begun another life. Gets the run as it was before. Called after `runChanged`. */
  runRevived?(run: Run): void;
  /** Runs have stored messages for each other. */
  messagesLeft(): void;
  /** Default: no one is notified. */
  readonly work?: WorkListener;
}

export interface DataStoreOptions {
  clock: Clock;
  random: () => number;
  brain: Brain;
  hooks: StoreHooks;
  /** Limits of what is stored. */
  quotas?: Partial<Quotas>;
  /** Bounds the rows that readers read in one turn of the event loop. */
  slices?: Slices;
  /** The request that is being performed; only on servers to which nodes pass requests. */
  request?: () => TrackedRequest | undefined;
  /** Who orders what is being done. Default: no one is known. */
  orderer?: () => Orderer | undefined;
  /** How many tasks of a run one transaction reads and cancels. Replaced in tests. */
  sliceTasks?: number;
  /** Called with the outcomes of ticks of schedules. */
  ticked?: LocalTicksDeps["ticked"];
}

export interface DataStore {
  readonly store: Store;
  readonly rows: RowStore;
  readonly commit: GroupCommit;
  readonly performed: Performed;
  readonly audit: LocalAudit;
  readonly stored: StoredBytes;
  readonly board: LocalBoard;
  readonly runs: LocalRuns;
  readonly documents: LocalDocuments;
  readonly parts: LocalParts;
  readonly events: LocalEvents;
  readonly ticks: LocalTicks;
  readonly schedules: LocalSchedules;
  /** Rebuilds memory from the store. Call it once, after all listeners are attached. */
  recover(): Promise<void>;
  /** Reads the next deadlines of this kind; must be called at the deadlines with `farDeadlinePrefix`. */
  readDeadlines(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Closing the result closes the store. When opening fails, the store is closed too. */
export async function openDataStore(store: Store, options: DataStoreOptions): Promise<DataStore> {
  try {
    return dataStoreOn(store, options);
  } catch (error) {
    await store.close();
    throw store.inWords(error);
  }
}

function dataStoreOn(store: Store, options: DataStoreOptions): DataStore {
  const { clock, random, brain, hooks } = options;
  const { rows } = store;
  const commit = new GroupCommit(rows, () => clock.now(), options.orderer);
  store.checkRest((damage) => commit.refuse(damage));
  const taskChanged = (task: TaskRow) => {
    runs.decisions.records.changed(task);
    runs.decisions.ahead.changed(task);
    parts.taskChanged(task);
    hooks.taskChanged(task);
  };
  const performed = new Performed({ store: rows, commit, clock, request: options.request });
  const stored = new StoredBytes(rows, commit, options.quotas);
  const audit = new LocalAudit({ store: rows, commit, clock });
  const grantsFrom = store.wasServed ? firstGrant(clock.now()) : 0;
  const board = new LocalBoard({
    store: rows,
    commit,
    performed,
    audit,
    stored,
    clock,
    random,
    grantsFrom,
    changed: taskChanged,
    deadline: hooks.deadline,
    work: hooks.work,
  });
  const parts = new LocalParts({ store: rows, commit, stored, clock, tasks: board.tasks, first: (tx, task) => runs.firstPart(tx, task) });
  board.remains.onRemoved.add((ids) => parts.forget(ids));
  const documents = new LocalDocuments({ store: rows, commit, performed, audit, clock, stored, slices: options.slices });
  const runs = new LocalRuns({
    documents,
    store: rows,
    commit,
    performed,
    audit,
    clock,
    random,
    brain,
    board,
    changed: (run, before) => {
      ticks.runChanged(run);
      hooks.runChanged(run, before);
    },
    revived: (run) => hooks.runRevived?.(run),
    deadline: hooks.deadline,
    left: hooks.messagesLeft,
    familyRunsMax: options.quotas?.familyRuns,
    slices: options.slices,
    sliceTasks: options.sliceTasks,
  });
  const events = new LocalEvents({ store: rows, commit, runs, board, isRepeat: () => options.request?.()?.isRepeat === true });
  const ticks = new LocalTicks({ store: rows, commit, clock, runs, deadline: hooks.deadline, ticked: options.ticked });
  const schedules = new LocalSchedules({ store: rows, commit, performed, audit, clock, runs, ticks, slices: options.slices });
  return {
    ...{ store, rows, commit, performed, audit, stored, board, runs, documents, parts, events, ticks, schedules },
    async recover() {
      await audit.recover();
      await stored.recover();
      await runs.recoverMessages();
      await board.recover();
      await runs.recover();
      await ticks.recover();
      for (const far of [board.far, runs.far]) await far.recover();
      hooks.messagesLeft();
    },
    async readDeadlines(name) {
      for (const far of [board.far, runs.far]) await far.fire(name);
    },
    async close() {
      await commit.close();
      await store.close();
    },
  };
}
