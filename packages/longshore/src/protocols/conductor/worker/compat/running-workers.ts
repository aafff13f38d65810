// Running workers of the SDK. Each worker of a loaded module runs in a separate process, where its module is loaded again. Workers that the
// program itself declares run in the program's process.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Listeners } from "../../../../runner/events.ts";
import { allAlive, type WorkerStatus, type WorkerStatuses } from "../../../../runner/health.ts";
import type { Logger } from "../../../../runner/notices.ts";
import type { RestartOptions } from "../../../../runner/restarts.ts";
import { supervise } from "../../../../runner/supervise/supervise.ts";
import { work } from "../../../../work.ts";
import type { WorkerOptions as ConductorWorkerOptions } from "../config.ts";
import { conductor } from "../worker.ts";
import type { Connection } from "./client.ts";
import { taskOf } from "./task-adapter.ts";
import type { RegisteredWorker } from "./types.ts";

export interface Placed {
  readonly worker: RegisteredWorker;
  /** The module that declares the worker, when it runs in a separate process. */
  readonly module: string | undefined;
  readonly workerId: string;
}

export interface RunOptions {
  readonly connection: Connection;
  /** The folder in which each group has its own subfolder. */
  readonly outbox: string | false;
  readonly listeners: readonly Listeners[];
  readonly logger: Logger;
  readonly restarts: RestartOptions;
}

/** Workers that run in one process. */
export interface WorkerGroup {
  readonly placed: readonly Placed[];
  workers(): WorkerStatuses;
  stop(): Promise<void>;
}

/** The data of a worker's process. */
export interface ChildWork {
  readonly module: string;
  readonly taskDefName: string;
  readonly domain: string | undefined;
  readonly connection: Connection;
  readonly options: ConductorWorkerOptions;
  readonly outbox: string | false;
}

/** Starts all of them, or none. */
export async function startWorkers(placed: readonly Placed[], options: RunOptions): Promise<WorkerGroup[]> {
  const started: WorkerGroup[] = [];
  try {
    for (const group of groupsOf(placed)) {
      const { length } = started;
      const inProcesses = group.filter(({ module }) => module !== undefined);
      const here = group.filter(({ module }) => module === undefined);
      if (here.length > 0) started.push(await startHere(here, options, length));
      if (inProcesses.length > 0) started.push(await startProcesses(inProcesses, options));
    }
    return started;
  } catch (error) {
    await Promise.all(started.map((group) => group.stop()));
    throw error;
  }
}

/** A group has each name only once, so workers of the same name in several domains are in several groups. */
function groupsOf(placed: readonly Placed[]): Placed[][] {
  const groups: Placed[][] = [];
  for (const each of placed) {
    const free = groups.find((group) => group.every(({ worker }) => worker.taskDefName !== each.worker.taskDefName));
    if (free === undefined) groups.push([each]);
    else free.push(each);
  }
  return groups;
}

async function startHere(placed: readonly Placed[], options: RunOptions, at: number): Promise<WorkerGroup> {
  const { connection, listeners, logger, outbox } = options;
  const workers = Object.fromEntries(placed.map((each) => [each.worker.taskDefName, optionsOf(each)]));
  const handle = await work({
    tasks: placed.map(({ worker }) => taskOf(worker)),
    on: conductor(connection.url, { ...connection.options, outbox: folderIn(outbox, `program-${at}`), workers }),
    listeners,
    logger,
    // The program handles signals itself, as with the SDK.
    signals: false,
  });
  return { placed, workers: () => handle.workers(), stop: () => handle.stop() };
}

async function startProcesses(placed: readonly Placed[], options: RunOptions): Promise<WorkerGroup> {
  const { listeners, logger, restarts } = options;
  const handle = await supervise({
    workers: placed.map((each) => ({ tasks: [each.worker.taskDefName], work: childWork(each, options) })),
    entry: new URL("./child.js", import.meta.url),
    listeners,
    logger,
    restarts,
    signals: false,
  });
  return { placed, workers: () => handle.workers(), stop: () => handle.stop() };
}

function childWork(each: Placed, { connection, outbox }: RunOptions): ChildWork {
  const { taskDefName, domain } = each.worker;
  const folder = folderIn(outbox, domain === undefined ? taskDefName : `${taskDefName}+${domain}`);
  return { module: each.module as string, taskDefName, domain, connection, options: optionsOf(each), outbox: folder };
}

/** Each process stores undelivered results in its own place, where its successor finds them. */
function folderIn(outbox: string | false, name: string): string | false {
  return outbox === false ? false : join(outbox, name.replace(/[^\w.+-]/g, "_").slice(0, 100));
}

/** Options in code; the environment takes precedence. Heartbeats are sent only on request. */
function optionsOf({ worker, workerId }: Placed): ConductorWorkerOptions {
  const { concurrency = 1, pollInterval, pollTimeout, domain, registerTaskDef, overwriteTaskDef, strictSchema, paused, taskDef } = worker;
  return {
    concurrency,
    workerId,
    leaseExtend: worker.leaseExtendEnabled ?? false,
    ...(pollInterval === undefined ? {} : { pollInterval }),
    ...(pollTimeout === undefined ? {} : { pollTimeout }),
    ...(domain === undefined ? {} : { domain }),
    ...(registerTaskDef === undefined ? {} : { registerTaskDef }),
    ...(overwriteTaskDef === undefined ? {} : { overwriteTaskDef }),
    ...(strictSchema === undefined ? {} : { strictSchema }),
    ...(paused === undefined ? {} : { paused }),
    ...(taskDef === undefined ? {} : { taskDef }),
  };
}

/** Distinguishes the workers of one machine, even those of one task in several processes. */
export function freshWorkerId(): string {
  return `${hostname()}-${process.pid}-${randomBytes(4).toString("hex")}`;
}

export function statusOf(started: readonly WorkerGroup[], each: Placed): WorkerStatus | undefined {
  return started.find(({ placed }) => placed.includes(each))?.workers()[each.worker.taskDefName];
}

export function allWell(started: readonly WorkerGroup[]): boolean {
  return started.every((group) => allAlive(group.workers()));
}
