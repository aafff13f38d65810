// What the server half of a protocol brings to a server, in the order in which the server needs it, and what it gets from the server.

import type { BusLog } from "../bus/log.ts";
import type { OutboxStore } from "../bus/outbox.ts";
import type { Clock } from "../core/clock.ts";
import type { Environment } from "../core/environment.ts";
import type { FailureListener } from "../core/failure-listener.ts";
import type { ReadFile, Warning } from "../core/file-place.ts";
import type { MakeId } from "../core/ids.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Slices } from "../core/slices/slices.ts";
import type { BlobStore } from "../engine/blob/blob.ts";
import type { Board } from "../engine/board/board.ts";
import type { DeadLetterSource } from "../engine/board/dead-letter.ts";
import type { TaskRow } from "../engine/board/task.ts";
import type { Carrier } from "../engine/board/wait-reason.ts";
import type { Workers } from "../engine/board/workers.ts";
import type { Logs } from "../engine/log/log.ts";
import type { PartStore } from "../engine/part/store.ts";
import type { Definition, Dialect } from "../engine/run/dialect.ts";
import type { DocumentStore } from "../engine/run/documents.ts";
import type { Plan } from "../engine/run/plan.ts";
import type { Reader } from "../engine/run/reader.ts";
import type { Run } from "../engine/run/run.ts";
import type { Runs } from "../engine/run/runs.ts";
import type { GrpcMethod } from "../net/grpc/service.ts";
import type { RouteGroup } from "../net/http/http.ts";

/** The engine as protocols see it: ports and decisions, no rows and no store. */
export interface ProtocolEngine {
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly board: Board;
  readonly runs: Runs;
  readonly documents: DocumentStore;
  readonly parts: PartStore;
  readonly logs: Logs;
  readonly blobs: BlobStore;
  readonly busLog: BusLog;
  readonly outboxStore: OutboxStore;
  readonly reader: Reader;
  /** Bounds what all readers together do in one turn of the event loop. */
  readonly slices: Slices;
  readonly workers: Workers;
  /** What carries tasks to workers, and knows why they wait. */
  readonly carriers: Set<Carrier>;
  /** What knows which items tasks have put aside. */
  readonly deadLetterSources: Set<DeadLetterSource>;
  plan(definition: Definition): Plan;
  /** Removes a run that has ended, with all that belongs to it. False when there is no such run. */
  removeRun(runId: string): Promise<boolean>;
  /** Calls the listener for every task and run that a commit changed, until the returned function is called. A listener must not throw. */
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
}

type LogLine = (message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** The server's log. */
export type ProtocolLog = Readonly<Record<"debug" | "info" | "warn" | "error", LogLine>>;

/** What a protocol gets before the server opens anything. */
export interface Preparing {
  readonly log: ProtocolLog;
  /** False on a server without a port. */
  readonly listens: boolean;
  /** Files and folders with secrets of this server. No definition may read them. */
  readonly secretPaths: readonly string[];
  readonly environment: Environment;
}

/** A protocol whose configuration was read. */
export interface PreparedProtocol<Handle extends object = object> {
  readonly dialects: readonly Dialect[];
  /** A definition to try a server with. */
  readonly sample?: { readonly name: string; readonly dialect: string; readonly source: string };
  open(around: {
    readonly engine: ProtocolEngine;
    readonly log: ProtocolLog;
    readonly trouble: FailureListener;
  }): Promise<OpenProtocol<Handle>>;
}

/** A protocol on an open engine, with or without a port. */
export interface OpenProtocol<Handle extends object = object> {
  /** The fields that it adds to `Server`. */
  readonly handle: Handle;
  /** Called once, on servers that listen. Absent: it has no routes. */
  serve?(around: Serving): Promise<ServedProtocol>;
  /** Ends what `open` began; called after the port is closed and before the engine is. */
  close?(): Promise<void>;
}

/** What a protocol gets when the server listens. */
export interface Serving {
  readonly version: string;
  readonly metrics: Metrics;
  /** Whether callers must show a token, and whether this is one. */
  readonly tokens: { readonly required: boolean; known(token: string): boolean };
}

export interface ServedProtocol {
  readonly routes: RouteGroup;
  readonly methods?: readonly GrpcMethod[];
  /** Begins what needs the server's address. */
  start?(url: string): Promise<void>;
  /** Replies to every poll that waits; called before the port closes. */
  dismiss?(): void;
  /** Ends what `start` began, while the port closes. */
  stop?(deadlineMs?: number): Promise<void>;
}

/** A format of definition files. */
export interface DefinitionFormat {
  readonly dialect: string;
  /** Whether a file with these keys is one of this format. */
  accepts(keys: readonly string[]): boolean;
  /** `file` is its name. Throws LONGSHORE_BAD_DEFINITION with line and column. */
  parse(read: ReadFile, file: string): { readonly name: string; readonly source: string; readonly warnings: readonly Warning[] };
}
