// Loads worker files and finds the tasks they export. Importing a file registers nothing, so its exports are all there is to look at.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { toError } from "../errors.ts";
import type { Task } from "../task.ts";
import { CommandFailure } from "./failure.ts";

/** All tasks of all files. A file that exports none is a mistake: it may be a program that should be run by itself. */
export async function loadTasks(files: readonly string[]): Promise<Task[]> {
  const found = new Set<Task>();
  for (const file of files) {
    const tasks = tasksOf(await importFile(file));
    if (tasks.length === 0) {
      throw new CommandFailure(
        `${file} exports no task. Write \`export const greet = task("greet", ...)\`; a file that calls work() itself is run with node.`,
      );
    }
    for (const task of tasks) found.add(task);
  }
  return [...found];
}

/** The tasks among a module's exports, also those in exported lists. */
export function tasksOf(module: Readonly<Record<string, unknown>>): Task[] {
  const values = exportsOf(module).flatMap((value) => (Array.isArray(value) ? value : [value]));
  return [...new Set(values.filter(isTask))];
}

/** A CommonJS module arrives as the `default` of what was imported, with its own exports inside. */
export function exportsOf(module: Readonly<Record<string, unknown>>): unknown[] {
  const inner = module.default;
  const nested = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? Object.values(inner) : [];
  return [...Object.values(module), ...nested];
}

/** By shape, not by class: the file may have imported another copy of this package. */
function isTask(value: unknown): value is Task {
  if (typeof value !== "object" || value === null) return false;
  const { name, handle, labels } = value as Partial<Task>;
  return typeof name === "string" && typeof handle === "function" && Array.isArray(labels);
}

export async function importFile(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  if (!existsSync(path)) throw new CommandFailure(`${file} does not exist (looked for ${path}).`);
  if (isTypeScript(path)) await prepareTypeScript(path);
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  } catch (thrown) {
    // The stack names the line of the user's file that threw.
    const error = toError(thrown);
    throw new CommandFailure(`${file} could not be loaded: ${error.stack ?? error.message}`, undefined, { cause: error });
  }
}

function isTypeScript(path: string): boolean {
  return [".ts", ".mts", ".cts", ".tsx"].includes(extname(path));
}

/** tsx comes first where it is installed, for it understands more than the types that Node can strip. */
async function prepareTypeScript(path: string): Promise<void> {
  const tsx = findTsx(path);
  if (tsx !== undefined) {
    // What `node --import tsx` does: from here on TypeScript can be imported.
    await import(pathToFileURL(tsx).href);
    return;
  }
  if ((process.features as { typescript?: string | false }).typescript) return;
  throw new CommandFailure(
    `${path} is TypeScript, which Node ${process.versions.node} does not run by itself. ` +
      "Run `npm install --save-dev tsx`, or name the compiled .js file, or use Node 22.18 or newer.",
  );
}

function findTsx(path: string): string | undefined {
  for (const place of [path, resolve("package.json")]) {
    try {
      return createRequire(place).resolve("tsx");
    } catch {
      // Not installed there; the next place may have it.
    }
  }
  return undefined;
}
