// The tasks of the files that a command names.

import { importForTasks, tasksOf } from "../core/load.ts";
import type { Task } from "../core/task.ts";
import { CommandFailure } from "./failure.ts";
import { findFiles } from "./find-files.ts";

/**
 * All tasks of all files, each with its file as its module. A file that is named and exports no task is a mistake: it may be a program that
 * should be run by itself. Of the files that a pattern matches, at least one must export a task.
 */
export async function loadTasks(patterns: readonly string[]): Promise<Task[]> {
  const found = new Map<Task, string>();
  for (const { file, byPattern } of findFiles(patterns)) {
    const tasks = tasksOf(await importForTasks(file));
    if (tasks.length === 0 && !byPattern) {
      throw new CommandFailure(
        `${file} exports no task. Write \`export const greet = task("greet", ...)\`; a file that calls work() itself is run with node.`,
      );
    }
    for (const task of tasks) if (!found.has(task)) found.set(task, file);
  }
  if (found.size === 0 && patterns.length > 0) throw new CommandFailure(`none of the files of ${patterns.join(", ")} exports a task.`);
  return [...found].map(([task, file]) => ({ ...task, module: file }));
}
