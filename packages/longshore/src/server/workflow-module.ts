// A module in a folder of definition files: every workflow that it exports is a definition. The module runs in the server's own process.

import { storedSchedule } from "../client/checked-schedule.ts";
import { toError } from "../core/errors.ts";
import { importForTasks, isRefusedWork } from "../core/load.ts";
import { codeDefinitions } from "../core/workflow-family.ts";
import { sortExports, workflowsIn } from "../module-exports.ts";
import type { DefinitionFile } from "../protocols/server-half.ts";
import type { Schedule } from "../schedule.ts";

/** Names of modules that have no workflows: types, tests and configurations. */
const otherModules = /\.(d|test|spec|config)\.[cm]?[jt]s$/;

export function isWorkflowModule(name: string): boolean {
  return /\.[cm]?[jt]s$/.test(name) && !otherModules.test(name);
}

/** What a server stores of a module. */
export interface WorkflowModule {
  readonly workflows: readonly DefinitionFile[];
  readonly schedules: readonly Schedule[];
}

/**
 * The workflows that the module exports and those that they run, and its schedules; none for a module that other modules only import. A
 * program that calls work() is left out, and `warn` is called. Throws LONGSHORE_BAD_CONFIG for a module that cannot be loaded,
 * LONGSHORE_BAD_DEFINITION for a mistake.
 */
export async function readWorkflowModule(file: string, warn: (message: string) => void): Promise<WorkflowModule> {
  try {
    const found = sortExports(await importForTasks(file));
    const workflows = codeDefinitions(workflowsIn([found])).map((definition) => ({ ...definition, warnings: [] }));
    return { workflows, schedules: await Promise.all(found.schedules.map(storedSchedule)) };
  } catch (error) {
    // The module may have imported another copy of this package, with its own error classes.
    if (isRefusedWork(toError(error))) {
      warn(`${file} is left out: it calls work(), so it is a program and not a module with workflows.`);
      return { workflows: [], schedules: [] };
    }
    throw error;
  }
}
