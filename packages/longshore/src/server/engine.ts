// The server without its ports: a store, the board, runs, and the rest of the state. Every server and every local worker uses an Engine.

import { hostname } from "node:os";
import { type Clock, systemClock } from "../core/clock.ts";
import { toError } from "../core/errors.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import { idMaker } from "../core/ids.ts";
import { Orderers } from "../core/orderer.ts";
import type { Quotas } from "../core/quotas.ts";
import type { RequestIds } from "../core/request-ids.ts";
import { Slices } from "../core/slices/slices.ts";
import type { SpanWriter } from "../core/trace.ts";
import { packageVersion } from "../core/version.ts";
import { storedAudit } from "../engine/audit/stored-audit.ts";
import { Board } from "../engine/board/board.ts";
import { Crews } from "../engine/board/crews.ts";
import type { DeadLetterSource } from "../engine/board/dead-letter.ts";
import type { LocalBoard } from "../engine/board/local-board.ts";
import { farDeadlinePrefix } from "../engine/board/local-deadlines.ts";
import { type Carrier, whyWaiting } from "../engine/board/wait-reason.ts";
import type { WorkListener } from "../engine/board/work-listener.ts";
import { LocalBulk } from "../engine/bulk/local-bulk.ts";
import { Logs } from "../engine/log/log.ts";
import type { LogStore } from "../engine/log/store.ts";
import type { Performed } from "../engine/request-marks.ts";
import type { RowStore } from "../engine/rows.ts";
import { brainOf } from "../engine/run/brain.ts";
import type { Definition, Dialect } from "../engine/run/dialect.ts";
import type { HistoryReader } from "../engine/run/history.ts";
import { servedHistory } from "../engine/run/local-history.ts";
import { LocalJournal } from "../engine/run/local-journal.ts";
import { LocalRecordTimes } from "../engine/run/local-times.ts";
import { Retention, type RetentionPolicy, retentionDefault } from "../engine/run/retention.ts";
import { Runs } from "../engine/run/runs.ts";
import { scheduleDeadlinePrefix } from "../engine/schedule/local-ticks.ts";
import type { Outcome } from "../engine/schedule/schedule.ts";
import { LocalRing } from "../engine/stats/local-ring.ts";
import { keptSamples, LocalStatistics } from "../engine/stats/local-statistics.ts";
import type { Store, StoredSize } from "../engine/store.ts";
import { StoreState } from "../engine/store-state.ts";
import type { ChangeListener, NodeView, ProtocolEngine } from "../protocols/server-half.ts";
import { openSqlite, type SqliteOptions } from "../store/sqlite/store.ts";
import { type DataStore, openDataStore } from "./data-store.ts";
import { displayedInputBy } from "./displayed-input.ts";
import { plainDialects, reservedLanes } from "./protocols.ts";
import { openSideStores } from "./side-stores.ts";
import { attemptSpan, writeSpans } from "./spans.ts";
import { tableSizesBy } from "./table-sizes.ts";
import { taskOriginBy } from "./task-origin.ts";
import { unreadable } from "./unreadable-rows.ts";

export interface EngineOptions {
  /**
   * The dialects for workflows. Default: those of the registry, without configuration. When two have the same name, the last one is used.
   */
  dialects?: readonly Dialect[];
  /** The folder of the data file; null keeps everything in memory. */
  directory: string | null;
  retention?: RetentionPolicy;
  quotas?: Partial<Quotas>;
  probe?: EngineProbe;
  /** Receives spans of runs, steps and attempts. Default: there are none. */
  spans?: SpanWriter;
  /** How a database is opened. Replaced in tests by one that fails on purpose. */
  open?: SqliteOptions["open"];
  /** How a store is opened. Default: SQLite. */
  openStore?: (options: SqliteOptions) => Promise<Store>;
  /** Receives the opened data store. For tests. */
  opened?: (store: DataStore) => void;
  /** Serve a damaged data file, as far as it can be read. */
  acceptDamage?: boolean;
  /** Receives warnings about the data folder for an operator. */
  warn?: (message: string) => void;
  /** Called when the store cannot be written, and when it can be again. */
  trouble?: FailureListener;
  /** Called with errors that no caller receives. */
  failed?: (what: string, error: unknown) => void;
  /** Default: the clock of the store, or of the machine. */
  clock?: Clock;
  random?: () => number;
  /** Makes the ids of what a request starts: a request that is performed again makes the same ids again. Default: every id is a new one. */
  ids?: Pick<RequestIds, "make" | "isRepeat" | "current">;
}

/** The probe is called while the engine works, for metrics. Without a probe, nothing is measured. */
export interface EngineProbe {
  /** `isWaiting`: the store writes asynchronously, so the process did other work during this time. */
  committed(seconds: number, isWaiting: boolean): void;
  /** Reads whose rows were not in memory were loaded together, for an operation or outside of operations. */
  loaded(reads: number, isOperation: boolean): void;
  logged(bytes: number): void;
  /** Ticks of schedules have this outcome: how many, and how late the last of them was decided. */
  ticked(outcome: Outcome, count: number, lateSeconds: number): void;
}

/** The engine as protocols see it, plus what only the server itself uses. */
export interface Engine extends ProtocolEngine {
  /** Whether the data file can be written, and its size. */
  readonly storage: StoreState;
  /** The number of delivered tasks, and of attempts that closed without a result, since the start. */
  readonly taskCounts: Readonly<LocalBoard["counts"]>;
  /** Performs work on behalf of a caller (`within`), and knows this caller in its transactions, for the audit. */
  readonly orderers: Orderers;
  /** The ids of queued tasks that are not due yet. */
  readonly delayed: ReadonlySet<string>;
  openRuns(): number;
  /** Calls the listener until the returned function is called. */
  listenToWork(listener: WorkListener): () => void;
  /** The bytes of the store, such as those of the data file and its write-ahead log; empty for one in memory. */
  size(): Promise<readonly StoredSize[]>;
  /** How many schedules there are. */
  scheduleCount(): number;
  /** The stored answers to requests that other nodes passed on. */
  readonly performed: Pick<Performed, "answer" | "keepAnswer">;
  close(): Promise<void>;
}

export async function openEngine(options: EngineOptions): Promise<Engine> {
  const { directory, random = Math.random, probe, failed = () => {} } = options;
  const makeId = options.ids?.make ?? idMaker();
  const known = options.dialects ?? (await plainDialects());
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const listeners = new Set<ChangeListener>();
  const workListeners = new Set<WorkListener>();
  const carriers = new Set<Carrier>();
  const deadLetterSources = new Set<DeadLetterSource>();
  const slices = new Slices();
  const orderers = new Orderers();
  let hasFailed = false;
  // Listeners are called at the end of a commit. If one throws, for example because it cannot read a run, the process must not end.
  const tell = <L>(told: ReadonlySet<L>, call: (listener: L) => void) => {
    for (const listener of told) {
      try {
        call(listener);
      } catch (error) {
        if (!hasFailed) warn?.(`A metric, span or event leaves out a change that could not be read: ${toError(error).message}.`);
        hasFailed = true;
      }
    }
  };
  const { open, acceptDamage, warn, openStore = openSqlite } = options;
  const opened = await openStore({ directory, open, acceptDamage, warn });
  const clock = options.clock ?? opened.clock ?? systemClock;
  const store = await openDataStore(probe === undefined ? opened : timed(opened, probe), {
    slices,
    clock,
    random,
    brain: brainOf(dialects, { slices, reserved: reservedLanes, functionChars: options.quotas?.functionChars }),
    quotas: options.quotas,
    request: options.ids?.current,
    orderer: orderers.current,
    ticked: probe && ((outcome, count, lateMs) => probe.ticked(outcome, count, lateMs / 1_000)),
    hooks: {
      deadline: (id, at) => board.deadline(id, at),
      taskChanged: (task) => {
        board.changed(task);
        beside.taskChanged(task);
        tell(listeners, (listener) => listener.task?.(task));
      },
      runChanged: (run, before) => {
        runs.changed(run);
        beside.runChanged(run, before);
        tell(listeners, (listener) => listener.run?.(run));
      },
      runRevived: (run) => beside.runRevived(run),
      messagesLeft: () => runs.carry(),
      work: {
        handedOut: (task, at) => tell(workListeners, (listener) => listener.handedOut(task, at)),
        attemptOver: (task, end) => tell(workListeners, (listener) => listener.attemptOver(task, end)),
      },
    },
  });
  options.opened?.(store);
  const { trouble } = options;
  const writing = `writing ${opened.shown}`;
  if (trouble !== undefined) store.commit.hear((why) => (why === null ? trouble.working(writing) : trouble.failing(writing, why)));
  const statistics = new LocalStatistics({
    ...{ store: store.rows, read: (work) => store.commit.read(work), slices, clock },
    ring: new LocalRing({ store: store.rows, commit: store.commit, samples: keptSamples }),
    ...{ lanes: store.board.lanes, counts: store.board.counts, workers: () => beside.workers, tally: () => beside.tally },
  });
  workListeners.add(statistics);
  const beside = await orClose(store, () => openSideStores(store, { clock, slices, watcher: statistics }));
  const board = new Board({ store: store.board, clock, reserved: reservedLanes });
  board.onDeadline(scheduleDeadlinePrefix, (name) => store.ticks.fire(name));
  board.onDeadline(farDeadlinePrefix, (name) => store.readDeadlines(name));
  const runs = new Runs({ store: store.runs, clock, makeId, dialects, slices, trouble, isRepeat: options.ids?.isRepeat });
  const age = await orClose(store, async () => {
    try {
      await store.recover();
      await beside.recover();
      await statistics.recover();
    } catch (error) {
      throw unreadable(error, opened.shown);
    }
    await beside.retention.notePolicy(options.retention ?? retentionDefault);
    return beside.retention.age();
  });
  const { blobs, busLog, outbox: outboxStore, reader, summaries, catalogue, workers } = beside;
  const logStore = probe === undefined ? beside.logs : measured(beside.logs, probe);
  const logs = new Logs(logStore);
  store.runs.signals.onMisfit.add(({ id: taskId, runId, attempt, grant }, { number }, why) => {
    const data = `${why} The step waits for another value.\n`;
    // An error is ignored: it costs only one line of the log.
    const noted = logs.append({ taskId, runId, attempt, grant, chunks: [{ stream: "stderr", sequence: number, data, at: clock.now() }] });
    noted.catch(() => {});
  });
  const audit = storedAudit({ store: store.rows, read: (work) => store.commit.read(work), slices });
  const removeRun = (runId: string) => beside.retention.removeRun(runId);
  const bulk = new LocalBulk({
    ...{ store: store.rows, commit: store.commit, clock, makeId, runs, summaries, removeRun, orderers, trouble },
    ...{ audit: store.audit, auditReader: audit },
    async nodeOf(runId, step) {
      const run = await runs.run(runId);
      const definition = run && (await runs.definitionById(run.definitionId));
      const plan = definition && store.runs.definitions.planNow(definition);
      return plan?.driven ? undefined : plan?.index.get(step);
    },
  });
  const retention = new Retention({
    store: beside.retention,
    age,
    clock,
    policy: options.retention,
    failed: (error) => failed("retention", error),
  });
  const startedAt = clock.now();
  let closing: Promise<void> | undefined;
  const listen = (listener: ChangeListener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const listenToWork = (listener: WorkListener) => {
    workListeners.add(listener);
    return () => workListeners.delete(listener);
  };
  await bulk.recover();
  if (options.spans !== undefined) writeSpans({ listen, listenToWork }, options.spans);
  return {
    shown: displayedInputBy({ dialects, read: (work) => store.commit.read(work), ...store.runs }),
    clock,
    makeId,
    storage: new StoreState(store),
    lanes: store.board.lanes,
    taskCounts: store.board.counts,
    delayed: store.board.delayed,
    performed: store.performed,
    board,
    runs,
    documents: store.documents,
    journal: new LocalJournal({
      ...{ store: store.rows, read: (work) => store.commit.read(work), slices },
      ...{ runs: store.runs.runs, tasks: store.board.tasks },
    }),
    schedules: store.schedules,
    events: store.events,
    parts: store.parts,
    signals: store.runs.signals,
    nodes: async () => [{ id: `${hostname()}/${process.pid}`, url: null, ...aloneSince(startedAt, clock.now()) }],
    facts: async () => ({
      startedAt,
      store: opened.shown,
      sizes: (await opened.size?.()) ?? [],
      stored: [...store.stored.all()],
      kept: options.retention ?? retentionDefault,
    }),
    tableSizes: tableSizesBy(clock, opened.tableSizes?.bind(opened)),
    foreseePruning: (keep) => retention.foresee(keep),
    removeRun,
    audit,
    bulk,
    orderers,
    logs,
    logStore,
    blobs,
    busLog,
    outboxStore,
    reader,
    recordReader: new LocalRecordTimes({
      ...{ store: store.rows, read: (work) => store.commit.read(work), tasks: store.board.tasks, slices },
    }),
    summaries,
    catalogue,
    statistics,
    slices,
    history: historyOf(store),
    workers,
    openRuns: beside.openRuns,
    scheduleCount: () => store.ticks.size,
    carriers,
    waiting() {
      const { lanes, limits } = store.board;
      const crews = new Crews(workers, slices);
      return async (task) => {
        // Workers are searched only for a task that can be taken.
        const crew = task.state === "queued" && task.lane !== null ? await crews.of(task.lane) : null;
        return whyWaiting(task, { lanes, limits, crew, carriers: [...carriers], now: clock.now() });
      };
    },
    deadLetterSources,
    deadLetters: async (task) => (await Promise.all([...deadLetterSources].map((source) => source.deadLetters(task)))).flat(),
    plan: (definition) => store.runs.definitions.planNow(definition),
    withPlan: store.runs.definitions.withPlan,
    originOf: taskOriginBy({
      ...{ read: (work) => store.commit.look(work), runs: store.runs.runs, definitions: store.runs.definitions },
      plan: (definition) => store.runs.definitions.planNow(definition),
    }),
    listen,
    listenToWork,
    spanOf: options.spans === undefined ? () => undefined : attemptSpan,
    size: async () => (await opened.size?.()) ?? [],
    close() {
      closing ??= (async () => {
        board.close();
        statistics.close();
        await retention.stop();
        await bulk.close();
        await runs.close();
        beside.flush();
        await store.close();
      })();
      return closing;
    },
  };
}

/** A server that does not share its data. */
function aloneSince(startedAt: number, seenAt: number): Omit<NodeView, "id" | "url"> {
  return { version: packageVersion(), state: "owner", startedAt, seenAt, epoch: null, leaseMs: null };
}

function historyOf({ rows, commit, runs: { definitions } }: DataStore): HistoryReader {
  const plan = (definition: Definition) => definitions.planNow(definition);
  return servedHistory({ store: rows, plan, definitions }, (work) => commit.read(work));
}

/** When a step of the start fails, closes the store, and throws the error as the store explains it. */
async function orClose<T>(store: DataStore, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    await store.close();
    throw store.store.inWords(error);
  }
}

/** The store with a probe that times its commits and counts its loads. */
function timed(store: Store, probe: EngineProbe): Store {
  const { rows } = store;
  const commit = (write: () => void) => {
    const startedAt = performance.now();
    const end = (isWaiting: boolean) => probe.committed((performance.now() - startedAt) / 1_000, isWaiting);
    const committed = rows.commit(write);
    return committed instanceof Promise ? committed.then(() => end(true)) : end(false);
  };
  const load: RowStore["load"] = (tx, missing) => {
    probe.loaded(missing.length, tx.isOperation);
    return rows.load(tx, missing);
  };
  return { ...store, rows: { ...rows, commit, load } };
}

function measured(store: LogStore, probe: EngineProbe): LogStore {
  return {
    async append(batch) {
      const appended = await store.append(batch);
      probe.logged(batch.chunks.reduce((sum, chunk) => sum + Buffer.byteLength(chunk.data), 0));
      return appended;
    },
    read: (taskId, page) => store.read(taskId, page),
    since: (source, after, limit) => store.since(source, after, limit),
    before: (source, before, limit) => store.before(source, before, limit),
    lastLine: (taskId) => store.lastLine(taskId),
  };
}
