// The server as an object for the program that runs it: defines workflows, starts and awaits runs, calls tasks, attaches workers.

import { buffer } from "node:stream/consumers";
import type { Client, SentSignal } from "../client/client.ts";
import type { Blobs } from "../core/context.ts";
import { LongshoreError } from "../core/errors.ts";
import { byProgram } from "../core/orderer.ts";
import type { BlobStore } from "../engine/blob/blob.ts";
import { noSuchRun } from "../engine/run/no-such-run.ts";
import type { Run, RunState } from "../engine/run/run.ts";
import { taskOfStep } from "../engine/run/step-task.ts";
import type { ProtocolHandles } from "../protocols/index.ts";
import type { Transport, TransportSource } from "../runner/transport.ts";
import { endWorkers } from "./ended-workers.ts";
import type { Engine } from "./engine.ts";
import { type FailureNews, watchFailures } from "./failed-runs.ts";
import { localTransport } from "./local.ts";
import { LocalClient } from "./local-client.ts";
import type { Define } from "./program-definitions.ts";
import { type WaitingNews, watchWaiting } from "./waiting-tasks.ts";
import type { LoadedWorkflows } from "./workflows.ts";

/** How a run ended. */
export interface RunResult<Output = unknown> {
  readonly id: string;
  readonly state: RunState;
  readonly output: Output | null;
  readonly error: string | null;
}

/** A running server. */
export interface Server extends Client, ProtocolHandles, TransportSource, AsyncDisposable {
  /** Null when the server has no socket. */
  readonly url: string | null;
  readonly port: number | null;
  /** The result of loading the definition files. */
  readonly workflows: LoadedWorkflows;
  readonly define: Define;
  /** Waits until the run has ended, in any state. `run(id).result()` returns the output alone, and rejects when the run has failed. */
  result<Output = unknown>(runId: string): Promise<RunResult<Output>>;
  /** Cancels the run unless it has ended; the reason becomes its error. Returns whether the run is cancelled, also by an earlier call. */
  cancel(runId: string, options?: { reason?: string }): Promise<boolean>;
  /** Sends a signal to a run, as `run(id).signal()` does. */
  signal(runId: string, name: string, value?: unknown, options?: { key?: string }): Promise<SentSignal>;
  /** A transport to this server for `work()`; `on: server` uses it. */
  transport(): Transport;
  /** Reports once for each cause why tasks wait, and when the cause ends. The returned function stops the reports. */
  watchWaiting(tell: (news: WaitingNews) => void): () => void;
  /** Reports runs that fail, time out or are blocked, as soon as they do. The returned function stops the reports. */
  watchFailures(tell: (news: FailureNews) => void): () => void;
  /**
   * Ends the holds of workers whose process has ended, so that their tasks go to other workers at once. For programs that start worker
   * processes. `idPrefix` is the beginning of the ids of these workers; by default, ids begin with host name and process id.
   */
  endWorkers(idPrefix: string): Promise<void>;
  /**
   * Stops accepting requests, ends waiting long polls with an empty result, lets running requests finish, then closes the store.
   * `deadlineMs` bounds the wait for requests. A second call waits for the first.
   */
  close(deadlineMs?: number): Promise<void>;
}

/** The part of a server that a program uses, with or without a socket. */
export type ProgramSide = Omit<Server, "url" | "port" | "workflows" | "close" | keyof ProtocolHandles | typeof Symbol.asyncDispose>;

export function programSide(engine: Engine): ProgramSide {
  const { board, runs, workers, logs, clock, makeId } = engine;
  const client = new LocalClient(engine);
  return {
    ...clientMethods(client),
    define: client.define,
    async result(runId) {
      const run = await runs.result(runId);
      if (run === undefined) throw noSuchRun(runId);
      return resultOf(run) as never;
    },
    async cancel(runId, { reason } = {}) {
      return (await engine.orderers.within(byProgram, () => runs.cancel(runId, reason)))?.state === "cancelled";
    },
    signal: (runId, name, value, options) => client.run(runId).signal(name, value, options),
    watchWaiting: (tell) => watchWaiting(engine, tell),
    watchFailures: (tell) => watchFailures(engine, tell),
    endWorkers: (idPrefix) => endWorkers(engine, idPrefix),
    transport: () =>
      localTransport({
        ...{ board, workers, logs, parts: engine.parts, journal: engine.journal, blobs: blobsFor(engine.blobs) },
        taskOfStep: (runId, stepId) => taskOfStep(engine, runId, stepId),
        spanOf: engine.spanOf,
        holder: `local-${makeId(clock.now())}`,
      }),
  };
}

/** The methods of a client as fields of a larger object. */
export function clientMethods(client: Client): Client {
  return {
    start: client.start.bind(client) as Client["start"],
    execute: client.execute.bind(client) as Client["execute"],
    emit: client.emit.bind(client),
    run: client.run.bind(client) as Client["run"],
    runs: client.runs.bind(client),
    call: client.call.bind(client) as Client["call"],
    define: client.define.bind(client) as Client["define"],
    definitions: client.definitions.bind(client),
    schedule: client.schedule.bind(client),
    schedules: client.schedules.bind(client),
  };
}

/** Blobs for a handler: read and written as a whole, and addressed by their hash. */
function blobsFor(store: BlobStore): Blobs {
  return {
    put: async (bytes) => (await store.put(typeof bytes === "string" ? Buffer.from(bytes) : bytes)).hash,
    async get(id) {
      const found = await store.get(id);
      if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", `There is no blob ${id}.`);
      return buffer(found.content);
    },
  };
}

function resultOf(run: Run): RunResult {
  return { id: run.id, state: run.state, output: run.output === null ? null : JSON.parse(run.output), error: run.error };
}
