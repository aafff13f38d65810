// Everything that board and runs do not need: logs, blobs, the bus, the worker registry, counts, reading and pruning.

import type { BusLog } from "../core/bus/log.ts";
import type { OutboxStore } from "../core/bus/outbox-store.ts";
import type { Clock } from "../core/clock.ts";
import type { Slices } from "../core/slices/slices.ts";
import type { BlobStore } from "../engine/blob/blob.ts";
import { LocalBlobs } from "../engine/blob/local-blobs.ts";
import { BlobReferences } from "../engine/blob/references.ts";
import { LocalWorkers } from "../engine/board/local-workers.ts";
import type { TaskRow } from "../engine/board/task.ts";
import type { Workers } from "../engine/board/workers.ts";
import { LocalBus } from "../engine/bus/local-bus.ts";
import { LocalOutbox } from "../engine/bus/local-outbox.ts";
import { LocalLogs } from "../engine/log/local-logs.ts";
import type { LogStore } from "../engine/log/store.ts";
import type { Catalogue } from "../engine/run/catalogue.ts";
import { Counts } from "../engine/run/counts.ts";
import { LocalCatalogue } from "../engine/run/local-catalogue.ts";
import { LocalReader } from "../engine/run/local-reader.ts";
import { LocalRetention } from "../engine/run/local-retention.ts";
import { LocalSummaries } from "../engine/run/local-summaries.ts";
import type { RunTally, RunWatcher } from "../engine/run/local-tally.ts";
import type { Reader } from "../engine/run/reader.ts";
import type { RetentionStore } from "../engine/run/retention.ts";
import type { Run } from "../engine/run/run.ts";
import type { RunSummaries } from "../engine/run/run-summary.ts";
import type { ReadDeps } from "../engine/sliced-reads.ts";
import type { DataStore } from "./data-store.ts";

export interface SideStores {
  readonly logs: LogStore;
  readonly blobs: BlobStore;
  readonly busLog: BusLog;
  readonly outbox: OutboxStore;
  readonly workers: Workers;
  readonly reader: Reader;
  readonly summaries: RunSummaries;
  readonly catalogue: Catalogue;
  readonly retention: RetentionStore;
  readonly tally: RunTally;
  openRuns(): number;
  /** Call this for each task and run that a commit changed. */
  taskChanged(task: TaskRow): void;
  runChanged(run: Run, before: Run | undefined): void;
  runRevived(run: Run): void;
  /** Rebuilds memory from the file; call it after the store's own recovery. */
  recover(): Promise<void>;
  /** Writes everything that is pending; call it before the store is closed. */
  flush(): void;
}

export interface SideStoresOptions {
  readonly clock: Clock;
  readonly slices: Slices;
  /** Is called for runs that start and end. */
  readonly watcher?: RunWatcher;
}

export function openSideStores(store: DataStore, { clock, slices, watcher }: SideStoresOptions): SideStores {
  const { commit, performed, stored } = store;
  const { contents } = store.store;
  const { tasks, lanes } = store.board;
  const { runs, definitions, signals } = store.runs;
  const counts = new Counts({ store: store.rows, commit, slices, watcher });
  const blobs = new LocalBlobs({ store: store.rows, commit, clock, stored, contents });
  const references = new BlobReferences({ store: store.rows, commit, runs, tasks, definitions, signals, parts: store.parts, blobs });
  const busLog = new LocalBus({ store: store.rows, commit, performed, clock, stored });
  const registry = new LocalWorkers({ store: store.rows, commit, clock, slices, cordonOf: (worker) => store.board.halts.cordonOf(worker) });
  const { workers } = registry;
  const reads = { store: store.rows, read: (work) => commit.read(work), slices } satisfies ReadDeps;
  return {
    logs: new LocalLogs({ store: store.rows, commit, performed, stored, slices }),
    blobs,
    busLog,
    outbox: new LocalOutbox({ store: store.rows, commit, clock }),
    workers,
    reader: new LocalReader({ ...reads, tasks, runs, lanes, counts, definitions }),
    summaries: new LocalSummaries({ ...reads, clock, tasks, counts }),
    catalogue: new LocalCatalogue(reads),
    retention: new LocalRetention({
      store: store.rows,
      commit,
      performed,
      audit: store.audit,
      stored,
      runs,
      tasks,
      board: store.board,
      counts,
      blobs,
      references,
      slices,
    }),
    tally: counts.tally,
    openRuns: () => counts.openRuns,
    taskChanged(task) {
      counts.taskChanged(task);
      workers.changed(task);
      references.taskChanged(task);
    },
    runChanged(run, before) {
      counts.runChanged(run, before);
      references.runChanged(run);
    },
    runRevived: (run) => counts.tally.left(run),
    async recover() {
      await registry.recover();
      await counts.recover();
      await busLog.recover();
      // The board has all tasks in memory that a worker holds.
      for (const task of tasks.allKept()) workers.changed(task);
    },
    flush: () => registry.close(),
  };
}
