// The engine of a node for the routes that it performs itself, which only read the rows that all nodes share. Any other component of the
// engine throws `NeedsOwner`. Then the node passes the request on to the owner.

import { storedAudit } from "../engine/audit/stored-audit.ts";
import { StoredBlobs } from "../engine/blob/stored-blobs.ts";
import { Logs } from "../engine/log/log.ts";
import { storedLogs } from "../engine/log/stored-logs.ts";
import { NeedsOwner } from "../engine/needs-owner.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import { LocalCatalogue } from "../engine/run/local-catalogue.ts";
import { servedHistory } from "../engine/run/local-history.ts";
import { LocalReader } from "../engine/run/local-reader.ts";
import { LocalSummaries } from "../engine/run/local-summaries.ts";
import { LocalRecordTimes } from "../engine/run/local-times.ts";
import type { Runs } from "../engine/run/runs.ts";
import { storedRows } from "../engine/run/stored-rows.ts";
import { storedSignals } from "../engine/signal/stored-signals.ts";
import { storedReads } from "../engine/stored-reads.ts";
import { blobTable } from "../engine/tables/blob.ts";
import type { ProtocolEngine } from "../protocols/server-half.ts";
import type { SharedRows } from "../store/postgres/shared-rows.ts";
import { displayedInputBy } from "./displayed-input.ts";
import { taskOriginBy } from "./task-origin.ts";

export interface StoredEngineDeps {
  /** An engine without data. Its components that need no data are used. */
  readonly idle: ProtocolEngine;
  readonly dialects: readonly Dialect[];
  readonly shared: SharedRows;
  /** True while the protocols are opened and closed: they may use the idle engine then. */
  isIdle(): boolean;
}

/** The components of an engine that have their state in the owner's memory, or that write. */
const ofOwner = [
  "board",
  "bulk",
  "documents",
  "schedules",
  "events",
  "parts",
  "busLog",
  "outboxStore",
  "lanes",
  "workers",
  "carriers",
  "statistics",
] as const;

export function storedEngine({ idle, dialects: known, shared, isIdle }: StoredEngineDeps): ProtocolEngine {
  const { rows: store } = shared;
  const { slices, plan } = idle;
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const read = storedReads(store);
  const rows = storedRows(store, idle.withPlan);
  const logStore = storedLogs({ store, read, slices });
  const needsOwner = (): never => {
    throw new NeedsOwner();
  };
  const guarded = Object.fromEntries(ofOwner.map((port) => [port, guard(idle[port], isIdle)]));
  const reader = new LocalReader({ store, read, slices, ...rows });
  const runReads: Partial<Runs> = {
    run: (id) => reader.run(id),
    definition: (name) => reader.definition(name),
    definitionById: (id) => reader.definitionById(id),
  };
  return {
    ...idle,
    ...(guarded as Pick<ProtocolEngine, (typeof ofOwner)[number]>),
    runs: guard(idle.runs, isIdle, runReads),
    signals: { ...storedSignals({ store, read, slices }), send: async () => needsOwner(), awaited: async () => needsOwner() },
    audit: storedAudit({ store, read, slices }),
    reader,
    recordReader: new LocalRecordTimes({ store, read, slices, tasks: rows.tasks }),
    catalogue: new LocalCatalogue({ store, read, slices }),
    summaries: new LocalSummaries({ store, read, slices, clock: idle.clock, ...rows }),
    history: servedHistory({ store, plan, definitions: rows.definitions }, read),
    shown: displayedInputBy({ dialects, read, ...rows }),
    logs: new Logs(logStore),
    logStore,
    blobs: new StoredBlobs({ rows: store.table(blobTable), read, contents: shared.contents, now: shared.now }),
    // The reader returns only tasks that have ended. Such tasks wait for nothing.
    waiting: () => async () => null,
    deadLetters: async () => needsOwner(),
    originOf: taskOriginBy({ ...rows, read, plan }),
    listen: (listener) => (isIdle() ? idle.listen(listener) : needsOwner()),
    facts: async () => needsOwner(),
    tableSizes: async () => needsOwner(),
    foreseePruning: async () => needsOwner(),
    removeRun: async () => needsOwner(),
  };
}

/** Returns `port` with a guard: while the node serves, every use of it throws `NeedsOwner`, except for the members in `allowed`. */
function guard<T extends object>(port: T, isIdle: () => boolean, allowed: Partial<T> = {}): T {
  const refuse = () => {
    if (!isIdle()) throw new NeedsOwner();
  };
  return new Proxy(port, {
    get(target, name) {
      if (Object.hasOwn(allowed, name)) return Reflect.get(allowed, name);
      refuse();
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        refuse();
        return value.apply(target, args);
      };
    },
  });
}
