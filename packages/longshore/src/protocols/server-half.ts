// The server half of a protocol: the values that it provides, in the order in which the server needs them, and those that it gets.

import type { Caller, TokenScope } from "../core/actions.ts";
import type { BusLog } from "../core/bus/log.ts";
import type { OutboxStore } from "../core/bus/outbox-store.ts";
import type { Clock } from "../core/clock.ts";
import type { Environment } from "../core/environment.ts";
import type { LongshoreError } from "../core/errors.ts";
import type { EventTrigger } from "../core/event-trigger.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import type { ReadFile, Warning } from "../core/file-place.ts";
import type { MakeId } from "../core/ids.ts";
import type { JsonObject } from "../core/json/json.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Slices } from "../core/slices/slices.ts";
import type { SpanIds } from "../core/trace.ts";
import type { AuditReader } from "../engine/audit/audit.ts";
import type { BlobStore } from "../engine/blob/blob.ts";
import type { Board } from "../engine/board/board.ts";
import type { DeadLetter, DeadLetterSource } from "../engine/board/dead-letter.ts";
import type { LaneView } from "../engine/board/queue-state.ts";
import type { ReservedLanes } from "../engine/board/reserved-lanes.ts";
import type { TaskRow, TaskRowHead } from "../engine/board/task.ts";
import type { Carrier, Waiting } from "../engine/board/wait-reason.ts";
import type { Workers } from "../engine/board/workers.ts";
import type { BulkJobs } from "../engine/bulk/bulk.ts";
import type { EventStore } from "../engine/event/store.ts";
import type { Logs } from "../engine/log/log.ts";
import type { LogStore } from "../engine/log/store.ts";
import type { PartStore } from "../engine/part/store.ts";
import type { Catalogue } from "../engine/run/catalogue.ts";
import type { Definition, Dialect } from "../engine/run/dialect.ts";
import type { DocumentStore } from "../engine/run/documents.ts";
import type { HistoryReader } from "../engine/run/history.ts";
import type { JournalReader } from "../engine/run/journal.ts";
import type { Plan } from "../engine/run/plan.ts";
import type { Reader } from "../engine/run/reader.ts";
import type { RecordReader } from "../engine/run/record-times.ts";
import type { Keep, PruningView, RetentionPolicy } from "../engine/run/retention.ts";
import type { Run } from "../engine/run/run.ts";
import type { RunSummaries } from "../engine/run/run-summary.ts";
import type { Runs } from "../engine/run/runs.ts";
import type { DeclaredSchedule, ScheduleStore } from "../engine/schedule/store.ts";
import type { SignalStore } from "../engine/signal/store.ts";
import type { Statistics } from "../engine/stats/statistics.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import type { RouteGroup } from "../net/http/http.ts";

/** The engine as protocols see it: ports and decisions, no rows and no store. */
export interface ProtocolEngine {
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly board: Board;
  readonly runs: Runs;
  readonly documents: DocumentStore;
  /** The commands of durable functions, and their results. */
  readonly journal: JournalReader;
  readonly schedules: ScheduleStore;
  readonly events: EventStore;
  readonly parts: PartStore;
  readonly signals: SignalStore;
  readonly audit: AuditReader;
  /** Orders to many runs. */
  readonly bulk: BulkJobs;
  readonly logs: Logs;
  readonly logStore: LogStore;
  readonly blobs: BlobStore;
  readonly busLog: BusLog;
  readonly outboxStore: OutboxStore;
  readonly reader: Reader;
  /** Names, states and times of the records of a run. */
  readonly recordReader: RecordReader;
  /** Runs without their data, with many filters. */
  readonly summaries: RunSummaries;
  /** Definitions without their sources. */
  readonly catalogue: Catalogue;
  /** What was counted while the server worked. */
  readonly statistics: Statistics;
  readonly history: HistoryReader;
  readonly lanes: LaneView;
  readonly storage: Storage;
  /** Runs and tasks for display. */
  readonly shown: DisplayedInput;
  /** Limits the work of all readers together in one turn of the event loop. */
  readonly slices: Slices;
  readonly workers: Workers;
  /** Carriers that send tasks to workers, and know why they wait. */
  readonly carriers: Set<Carrier>;
  /**
   * Returns a function that reports why no worker has taken a queued or sent task; null for any other task. Reads the list of workers once,
   * for any number of tasks.
   */
  waiting(): (task: TaskRowHead) => Promise<Waiting | null>;
  readonly deadLetterSources: Set<DeadLetterSource>;
  /** The dead letters of a task, oldest first. */
  deadLetters(task: TaskRow): Promise<readonly DeadLetter[]>;
  /**
   * Compiled once for each definition; reads no rows. For definitions from `runs` or `reader`, whose plans are ready. For any other
   * definition, wait for `withPlan` first, because compiling a large one at once takes long.
   */
  plan(definition: Definition): Plan;
  /** Resolves when the plan of the definition is compiled, in slices. */
  withPlan(definition: Definition): Definition | Promise<Definition>;
  /** Synchronous when the store reads synchronously. */
  originOf(task: Pick<TaskRow, "runId" | "node">): TaskOrigin | Promise<TaskOrigin>;
  /** The span of the attempt that a worker gets with this task; undefined when this server writes no spans. */
  spanOf(task: TaskRow): SpanIds | undefined;
  /** The server and its data, in figures. */
  facts(): Promise<ServerFacts>;
  /** The bytes of each table; null for a store in memory. Measured at most once a minute. */
  tableSizes(): Promise<TableSizes | null>;
  /** What pruning would remove now, with this policy. */
  foreseePruning(keep: Keep): Promise<PruningView>;
  /** The servers that share the data, this one included. */
  nodes(): Promise<readonly NodeView[]>;
  /** Removes a run that has ended, with all that belongs to it. False when there is no such run. */
  removeRun(runId: string): Promise<boolean>;
  /** Calls the listener for every task and run that a commit changed, until the returned function is called. A listener must not throw. */
  listen(listener: ChangeListener): () => void;
}

/** A server that uses the data, alone or with others. */
export interface NodeView {
  readonly id: string;
  readonly url: string | null;
  readonly version: string;
  readonly state: "owner" | "member";
  readonly startedAt: number;
  readonly seenAt: number;
  /** Counts the owners of shared data. Null for a member. */
  readonly epoch: number | null;
  /** How long the owner's lease lasts without a renewal. */
  readonly leaseMs: number | null;
}

/** A server and its data, in figures. */
export interface ServerFacts {
  readonly startedAt: number;
  /** The name of the store in logs: `the data file`, `PostgreSQL`. */
  readonly store: string;
  /** The bytes of the store, by file or kind of data; empty for one in memory. */
  readonly sizes: readonly { readonly name: string; readonly bytes: number }[];
  /** The bytes stored by kind, and the quota of each kind. */
  readonly stored: readonly { readonly kind: string; readonly used: number; readonly max: number; readonly refused: number }[];
  /** How long ended runs and tasks are kept, and how many. */
  readonly kept: RetentionPolicy;
}

/** The bytes of the tables, the largest first. */
export interface TableSizes {
  readonly measuredAt: number;
  readonly tables: readonly { readonly name: string; readonly bytes: number }[];
}

/** Facts about a task that its run determines. */
export interface TaskOrigin {
  /** The name of the workflow; null for a task without a run, or of a removed run. */
  readonly workflow: string | null;
  /** True for a step that no author wrote: it is not shown to people. */
  readonly isHidden: boolean;
}

export interface ChangeListener {
  task?(task: TaskRow): void;
  run?(run: Run): void;
}

/** Whether the data file can be written. */
export interface Storage {
  /** How many transactions were committed. */
  readonly commits: number;
  /** Why the store cannot be written; null when it can. */
  readonly unavailable: LongshoreError | null;
  /** Checks that the data file is in its place. */
  look(): void;
  /** Writes a test value; rejects when the store cannot be written. */
  tryWrite(): Promise<void>;
}

/** Inputs as callers sent them, also when their dialect stores them in another form. */
export interface DisplayedInput {
  run(run: Run): Promise<Run>;
  task(task: TaskRow): Promise<TaskRow>;
}

type LogLine = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The server's log. */
export type ProtocolLog = Readonly<Record<"debug" | "info" | "warn" | "error", LogLine>>;

export type { Reservation } from "../engine/board/reserved-lanes.ts";

/** What a protocol gets before the server opens anything. */
export interface Preparing {
  readonly log: ProtocolLog;
  /** False on a server without a port. */
  readonly listens: boolean;
  /** Files and folders with secrets of this server. No definition may read them. */
  readonly secretPaths: readonly string[];
  readonly environment: Environment;
  /** Names that no task may have. */
  readonly reservedLanes: ReservedLanes;
}

/** A protocol whose configuration was read. */
export interface PreparedProtocol<Handle extends object = object> {
  readonly dialects: readonly Dialect[];
  /** A sample definition, for people who try a server. */
  readonly sample?: { readonly name: string; readonly dialect: string; readonly source: string };
  open(around: {
    readonly engine: ProtocolEngine;
    readonly log: ProtocolLog;
    readonly trouble: FailureListener;
    /** True when only the list of routes is needed, on an engine without data: nothing may be started or connected. */
    readonly isIdle: boolean;
  }): Promise<OpenProtocol<Handle>>;
}

/** A protocol on an open engine, with or without a port. */
export interface OpenProtocol<Handle extends object = object> {
  /** The fields that it adds to `Server`. */
  readonly handle: Handle;
  /** Called once, on servers that listen. Absent: it has no routes. */
  serve?(around: Serving): Promise<ServedProtocol>;
  /** Stops what `open` started; called after the port is closed and before the engine is closed. */
  close?(): Promise<void>;
}

/** The tokens of the server. */
export interface Tokens {
  readonly required: boolean;
  known(token: string): boolean;
  /** The caller of a header `authorization`; undefined when it has no known token. */
  identify(authorization: string | undefined): Caller | undefined;
  /** The tokens without their secrets, and when each was last used since the start of this process. */
  uses(): readonly { readonly name: string; readonly scopes: readonly TokenScope[]; readonly usedAt: number | null }[];
}

/** What a protocol gets when the server listens. */
export interface Serving {
  readonly version: string;
  readonly metrics: Metrics;
  /** Whether the server has a dashboard at `/ui`. */
  readonly hasPages: boolean;
  /** Whether callers must send a token, and whether a token is valid. */
  readonly tokens: Tokens;
  /** Programs of workers to copy, for every protocol. */
  workerPrograms(options: { readonly url: string; readonly asksToken: boolean }): Promise<WorkerProgram[]>;
  /** Reads a definition file of any protocol. */
  readonly readDefinition: ReadDefinition;
  /** The definition files that it accepts. */
  readonly definitionFiles: readonly FileDescription[];
}

/** A program of a worker, as `longshore snippets` prints it. */
export interface WorkerProgram {
  readonly protocol: string;
  readonly language: string;
  /** What to do with it: the file to save it as, or the place to paste it. */
  readonly how: string;
  readonly code: string;
  /** A job for the worker, and the commands that run it. */
  readonly tryIt: string;
}

export interface ServedProtocol {
  readonly routes: RouteGroup;
  /** True for the group that refuses requests for unknown paths. There is one. */
  readonly isFallback?: true;
  readonly methods?: readonly GrpcMethod[];
  /** Starts what needs the server's address. */
  start?(url: string): Promise<void>;
  /** Replies to every waiting poll; called before the port closes. */
  dismiss?(): void;
  /** Stops what `start` started, while the port closes. */
  stop?(deadlineMs?: number): Promise<void>;
}

/** What a definition file of a protocol looks like, for the description of the API. */
export interface FileDescription {
  /** A title such as "A flow of ...". */
  readonly title: string;
  /** The JSON Schema of such a file, limited to the keys that distinguish it from other files. */
  readonly schema: JsonObject;
}

export interface DefinitionText {
  readonly text: string;
  /** The name of the file. The definition's name is derived from it. */
  readonly file: string;
}

export interface DefinitionFile {
  readonly name: string;
  readonly dialect: string;
  readonly source: string;
  /** The schedules that start it. Absent for a workflow that comes from no definition file. */
  readonly schedules?: readonly DeclaredSchedule[];
  /** The events that start it. Absent for a workflow whose source has them. */
  readonly events?: readonly EventTrigger[];
  readonly warnings: readonly Warning[];
}

/** Rejects with LONGSHORE_BAD_DEFINITION, which has line and column, or with LONGSHORE_LIMIT when too many large texts wait. */
export type ReadDefinition = (given: DefinitionText) => Promise<DefinitionFile>;

export interface DefinitionFormat {
  readonly dialect: string;
  /** Whether a file with these keys is one of this format. */
  accepts(keys: readonly string[]): boolean;
  /** `file` is its name. Throws LONGSHORE_BAD_DEFINITION with line and column. */
  parse(read: ReadFile, file: string): Omit<DefinitionFile, "dialect">;
}
