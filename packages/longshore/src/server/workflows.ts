// Reads a folder of definition files and of modules with workflows at the start, and reports every mistake with its place.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { DefinedSchedule } from "../client/schedule.ts";
import { type ErrorCode, LongshoreError } from "../core/errors.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { FileDefinition } from "../engine/schedule/define-file.ts";
import type { DefinitionFile } from "../protocols/server-half.ts";
import type { Schedule } from "../schedule.ts";
import type { ParseDefinition } from "./definition-file.ts";
import { isWorkflowModule, type WorkflowModule } from "./workflow-module.ts";

/** Stores the definitions that were read. */
export interface DefinitionTarget {
  define(definition: FileDefinition): Promise<Definition>;
  schedule(schedule: Schedule): Promise<DefinedSchedule>;
}

/** The mistakes in a file that are found only when it is stored. */
const ofAuthor: ReadonlySet<ErrorCode> = new Set([
  "LONGSHORE_BAD_DEFINITION",
  "LONGSHORE_BAD_INPUT",
  "LONGSHORE_CONFLICT",
  "LONGSHORE_NOT_FOUND",
]);

/** What a server has read from its definition files at its start. */
export interface LoadedWorkflows {
  readonly defined: readonly { file: string; definition: Definition }[];
  /** The schedules of modules. */
  readonly schedules: readonly { file: string; schedule: DefinedSchedule }[];
  /** The warnings. Each begins with the file; for definition files as `file:line:column: text`. */
  readonly warnings: readonly string[];
  /** Files that were left out, each with an error. Its message begins with the file; for definition files as `file:line:column`. */
  readonly bad: readonly LongshoreError[];
}

export const noWorkflows: LoadedWorkflows = { defined: [], schedules: [], warnings: [], bad: [] };

/** A folder with more definition files is probably the wrong folder. */
const filesMax = 5_000;
const endings = /\.(ya?ml|json)$/;
/** Files of a project that have nothing to do with workflows. */
const projectFiles = /^(package(-lock)?|[tj]sconfig(\..+)?|longshore\.config)\.(json|ya?ml)$/;

/**
 * Reads every file before anything is defined. With `onBad` "refuse", a single mistake refuses the whole folder. With "skip", only the
 * files with mistakes are left out.
 */
export async function loadWorkflows(directory: string, target: DefinitionTarget, onBad: "refuse" | "skip"): Promise<LoadedWorkflows> {
  // The parser is loaded only when there are files.
  const { definitionParser } = await import("./definition-file.ts");
  const parseDefinition = await definitionParser();
  const bad: LongshoreError[] = [];
  const warnings: string[] = [];
  const parsed = new Map<string, { file: string; workflow: DefinitionFile }>();
  const planned = new Map<string, { file: string; schedule: Schedule }>();
  for (const name of filesOf(directory)) {
    const file = join(directory, name);
    try {
      const { workflows, schedules } = await read(file, name, parseDefinition, (message) => warnings.push(message));
      for (const workflow of workflows) {
        const other = parsed.get(workflow.name);
        // Two modules may export the same workflow.
        if (other?.workflow.source === workflow.source && isWorkflowModule(name)) continue;
        if (other !== undefined)
          throw inFile(file, `The name ${workflow.name} is taken by ${other.file}.`, { expected: "another file name" });
        parsed.set(workflow.name, { file, workflow });
      }
      for (const schedule of schedules) planned.set(schedule.name, { file, schedule });
    } catch (error) {
      if (!(error instanceof LongshoreError) || onBad === "refuse") throw error;
      bad.push(error);
    }
  }
  const defined: LoadedWorkflows["defined"][number][] = [];
  for (const { file, workflow } of parsed.values()) {
    const { warnings: found, ...definition } = workflow;
    const stored = await storing(file, () => target.define(definition));
    if (stored === undefined) continue;
    defined.push({ file, definition: stored });
    for (const { message, line, column } of found) warnings.push(`${file}:${line}:${column}: ${message}`);
  }
  const schedules: LoadedWorkflows["schedules"][number][] = [];
  for (const { file, schedule } of planned.values()) {
    const stored = await storing(file, () => target.schedule(schedule));
    if (stored !== undefined) schedules.push({ file, schedule: stored });
  }
  return { defined, schedules, warnings, bad };

  /** Undefined when the file is left out. */
  async function storing<T>(file: string, store: () => Promise<T>): Promise<T | undefined> {
    try {
      return await store();
    } catch (error) {
      if (!(error instanceof LongshoreError) || !ofAuthor.has(error.code)) throw error;
      const placed = inFile(file, error.message, error.detail, error);
      if (onBad === "refuse") throw placed;
      bad.push(placed);
      return undefined;
    }
  }
}

async function read(
  file: string,
  name: string,
  parseDefinition: ParseDefinition,
  warn: (message: string) => void,
): Promise<WorkflowModule> {
  if (endings.test(name)) return { workflows: [parse(file, (text) => parseDefinition(text, name))], schedules: [] };
  const { readWorkflowModule } = await import("./workflow-module.ts");
  return readWorkflowModule(file, warn);
}

function filesOf(directory: string): string[] {
  let names: string[];
  try {
    names = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory() && isDefinition(entry.name))
      .map((entry) => entry.name)
      .sort();
  } catch (cause) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The workflows folder ${directory} cannot be read: ${(cause as Error).message}.`, {
      cause,
      detail: { field: "workflows", expected: "a folder of definition files and modules" },
    });
  }
  if (names.length <= filesMax) return names;
  throw new LongshoreError("LONGSHORE_LIMIT", `${directory} holds ${names.length} definition files; at most ${filesMax} are read.`);
}

function isDefinition(name: string): boolean {
  return !name.startsWith(".") && !projectFiles.test(name) && (endings.test(name) || isWorkflowModule(name));
}

function parse(file: string, parseText: (text: string) => DefinitionFile): DefinitionFile {
  let text: string;
  try {
    text = readNamedFile(file).toString();
  } catch (error) {
    throw inFile(file, `The file cannot be read: ${(error as Error).message}.`, {}, error);
  }
  try {
    return parseText(text);
  } catch (error) {
    if (error instanceof LongshoreError) throw inFile(file, error.message, error.detail, error);
    throw error;
  }
}

function inFile(file: string, message: string, detail: LongshoreError["detail"], cause?: unknown): LongshoreError {
  const { line = 1, column = 1 } = detail;
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `${file}:${line}:${column}: ${message}`, {
    cause,
    detail: { ...detail, line, column },
  });
}
