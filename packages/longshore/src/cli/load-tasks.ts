// The modules that a command names, and the tasks of all of them.

import { importFile, importForTasks } from "../core/load.ts";
import type { Task } from "../core/task.ts";
import { isEmpty, type ModuleExports, sortExports, workflowsIn } from "../module-exports.ts";
import { type FunctionWorkflow, isFunctionWorkflow } from "../workflow.ts";
import { CommandFailure } from "./failure.ts";
import { findFiles } from "./find-files.ts";

export interface LoadedModule extends ModuleExports {
  readonly file: string;
}

/**
 * What all files export. Each named file must export something, and so must at least one of the files that a pattern matches. With
 * `mayWork`, none must: a file may call `work()` itself.
 */
export async function loadModules(patterns: readonly string[], { mayWork = false } = {}): Promise<LoadedModule[]> {
  const modules: LoadedModule[] = [];
  for (const { file, byPattern } of findFiles(patterns)) {
    const exported = sortExports(await (mayWork ? importFile(file) : importForTasks(file)));
    if (!isEmpty(exported)) modules.push({ file, ...exported });
    else if (!byPattern && !mayWork) throw new CommandFailure(`${file} exports neither tasks nor workflows. ${advice}`);
  }
  if (modules.length === 0 && patterns.length > 0 && !mayWork)
    throw new CommandFailure(`none of the files of ${patterns.join(", ")} exports a task or a workflow.`);
  return modules;
}

const advice = 'Write `export const greet = task("greet", ...)`; a file that calls work() itself is run with node.';

/** A durable function, and the file, workflow or schedule in which it was found. */
export interface LoadedFunction extends FunctionWorkflow {
  readonly module: string;
}

/** All tasks and durable functions of all files, each once. Throws when two tasks have one name, or when there is neither. */
export async function loadTasks(patterns: readonly string[]): Promise<{ tasks: Task[]; functions: LoadedFunction[] }> {
  const modules = await loadModules(patterns);
  const tasks = tasksIn(modules);
  const functions = functionsIn(modules);
  if (tasks.length + functions.length === 0 && modules.length > 0)
    throw new CommandFailure(`${modules.map(({ file }) => file).join(", ")} exports no task. ${advice}`);
  return { tasks, functions };
}

/** The durable functions of modules, also those that only a workflow or a schedule of theirs names, each once. */
export function functionsIn(modules: readonly LoadedModule[]): LoadedFunction[] {
  const found = new Map<FunctionWorkflow, string>();
  for (const module of modules)
    for (const workflow of workflowsIn([module]))
      if (isFunctionWorkflow(workflow) && !found.has(workflow)) found.set(workflow, module.file);
  return [...found].map(([workflow, module]) => ({ ...workflow, module }));
}

/** The tasks of modules, each once. A task that several files export belongs to the first of them. */
export function tasksIn(modules: readonly LoadedModule[]): Task[] {
  const found = new Map<Task, string>();
  const named = new Map<string, string>();
  for (const { file, tasks } of modules) {
    for (const task of tasks) {
      if (found.has(task)) continue;
      const other = named.get(task.name);
      if (other !== undefined)
        throw new CommandFailure(`two tasks are named "${task.name}" (${other} and ${file}), expected each name once.`);
      found.set(task, file);
      named.set(task.name, file);
    }
  }
  return [...found].map(([task, file]) => ({ ...task, module: file }));
}
