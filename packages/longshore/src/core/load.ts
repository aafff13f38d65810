// Loads modules of the user and finds their tasks: those that they export, and those that they declare by decorators.

import { type Stats, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LongshoreError, toError } from "./errors.ts";
import type { Task } from "./task.ts";

/** The tasks among a module's exports, also those in exported lists, each once. */
export function exportedTasks(module: Readonly<Record<string, unknown>>): Task[] {
  return exportedValues(module).filter(isTask);
}

/** Everything that a module exports, each value once: lists are opened, and an imported CommonJS module has its own exports in `default`. */
export function exportedValues(module: Readonly<Record<string, unknown>>): unknown[] {
  const inner = module.default;
  const nested = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? Object.values(inner) : [];
  return [...new Set([...Object.values(module), ...nested].flat())];
}

/** Checks the shape, not the class: the file may have imported another copy of this package. */
function isTask(value: unknown): value is Task {
  if (typeof value !== "object" || value === null) return false;
  const { name, handle, labels } = value as Partial<Task>;
  return typeof name === "string" && typeof handle === "function" && Array.isArray(labels);
}

export async function importFile(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  const found = look(path);
  if (found === undefined) throw failure(`${file} does not exist (looked for ${path}).`);
  if (!found.isFile()) throw failure(`${file} is not a file. Name the file that exports tasks.`);
  if (isTypeScript(path)) await prepareTypeScript(path);
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (thrown) {
    const error = toError(thrown);
    if (isRefusedWork(error)) throw error;
    const { loadFailure } = await import("./load-failure.ts");
    throw failure(loadFailure(file, error), error);
  }
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A circle of links, or a folder without permission: there is no file.
    return undefined;
  }
}

/** While this mark is set, no worker may start: the module is being loaded for its tasks. */
const loadingMark = Symbol.for("longshore.loading");

/** Imports a file for the tasks that it exports. Throws if the file calls `work()` while it loads. */
export async function importForTasks(file: string): Promise<Record<string, unknown>> {
  const world = globalThis as { [loadingMark]?: string };
  const before = world[loadingMark];
  world[loadingMark] = file;
  try {
    return await importFile(file);
  } finally {
    if (before === undefined) delete world[loadingMark];
    else world[loadingMark] = before;
  }
}

/** The file that is currently being loaded for its tasks. */
export function loadingFile(): string | undefined {
  return (globalThis as { [loadingMark]?: string })[loadingMark];
}

/**
 * Modules that declare tasks by decorators, without exporting them, register them here. It is on the global object, so that copies of this
 * package share it.
 */
const declaredMark = Symbol.for("longshore.declared");
type Declared = Set<() => readonly Task[]>;

/** `tasks` is called each time tasks are collected. */
export function declareTasks(tasks: () => readonly Task[]): void {
  const world = globalThis as { [declaredMark]?: Declared };
  world[declaredMark] ??= new Set();
  world[declaredMark].add(tasks);
}

/** Every task that the modules loaded so far have declared without exporting it. */
export function declaredTasks(): Task[] {
  return [...((globalThis as { [declaredMark]?: Declared })[declaredMark] ?? [])].flatMap((tasks) => tasks());
}

/** For a thread or process that only runs handlers: no worker may ever start in it. */
export function refuseWork(): void {
  (globalThis as { [loadingMark]?: string })[loadingMark] = "A module";
}

/** Throws while a module is loaded for its tasks: a worker started there would load the module again and start a further worker. */
export function refuseWhileLoading(): void {
  const file = (globalThis as { [loadingMark]?: string })[loadingMark];
  if (file === undefined) return;
  const message = `${file} calls work() while it is loaded for the tasks it exports. Keep tasks in a module of their own, which only exports them, and call work() elsewhere.`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "work" } });
}

/**
 * Whether `refuseWhileLoading` threw the error: then its message needs no addition. Checked by shape, because the file may have imported
 * another copy of this package.
 */
export function isRefusedWork(error: Error): boolean {
  const { code, detail } = error as Partial<LongshoreError>;
  return code === "LONGSHORE_BAD_CONFIG" && detail?.field === "work";
}

function failure(message: string, cause?: Error): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause });
}

function isTypeScript(path: string): boolean {
  return [".ts", ".mts", ".cts", ".tsx"].includes(extname(path));
}

/** Prefers tsx where it is installed: it supports more of TypeScript than the types that Node can strip. */
async function prepareTypeScript(path: string): Promise<void> {
  const tsx = findTsx(path);
  if (tsx !== undefined) {
    // Registers the hooks in this thread: hooks of another thread have no effect here.
    for (const kind of ["cjs", "esm"]) {
      const { register } = (await import(pathToFileURL(join(tsx, kind, "api/index.mjs")).href)) as { register(): unknown };
      register();
    }
    return;
  }
  if ((process.features as { typescript?: string | false }).typescript) return;
  throw failure(
    `${path} is TypeScript, which Node ${process.versions.node} does not run by itself. ` +
      "Run `npm install --save-dev tsx`, or name the compiled .js file, or use Node 22.18 or newer.",
  );
}

/** The folder with the built files of tsx. */
function findTsx(path: string): string | undefined {
  for (const place of [path, resolve("package.json")]) {
    try {
      return dirname(createRequire(place).resolve("tsx"));
    } catch {
      // Not installed there; the next place may have it.
    }
  }
  return undefined;
}
