// The workers that decorators have declared, for every TaskHandler of the process. The SDK's programs rely on this one list. It is on the
// global object, so that two copies of this package share it. Each worker is also declared as a task, so that a thread or a process that
// loads the same module finds it.

import { declareTasks, loadingFile } from "../../../../core/load.ts";
import { taskOf } from "./task-adapter.ts";
import type { RegisteredWorker } from "./types.ts";

interface Entry {
  readonly worker: RegisteredWorker;
  /** The module that was being loaded when the worker was declared. Undefined when the program itself declares its workers. */
  readonly module: string | undefined;
}

const registryKey = Symbol.for("longshore.conductor.workers");

function registry(): Map<string, Entry> {
  const world = globalThis as { [registryKey]?: Map<string, Entry> };
  const known = world[registryKey];
  if (known !== undefined) return known;
  const entries = new Map<string, Entry>();
  world[registryKey] = entries;
  declareTasks(() => [...entries.values()].map(({ worker, module }) => taskOf(worker, module)));
  return entries;
}

const keyOf = (taskDefName: string, domain = "") => `${taskDefName}:${domain}`;

/** When two workers have the same name and domain, the last one counts. */
export function registerWorker(worker: RegisteredWorker): void {
  const key = keyOf(worker.taskDefName, worker.domain);
  if (registry().has(key)) process.emitWarning(`A second worker for ${key.replace(/:$/, "")} replaces the first.`, "LongshoreWarning");
  registry().set(key, { worker, module: loadingFile() });
}

/** Returns all registered workers. */
export function getRegisteredWorkers(): RegisteredWorker[] {
  return [...registry().values()].map(({ worker }) => worker);
}

/** Returns the worker of a task definition, or undefined. */
export function getRegisteredWorker(taskDefName: string, domain?: string): RegisteredWorker | undefined {
  return registry().get(keyOf(taskDefName, domain))?.worker;
}

/** Removes all registered workers, for tests. */
export function clearWorkerRegistry(): void {
  registry().clear();
}

/** Returns how many workers are registered. */
export function getWorkerCount(): number {
  return registry().size;
}

export function moduleOf(worker: RegisteredWorker): string | undefined {
  return [...registry().values()].find((entry) => entry.worker === worker)?.module;
}
