// Reads a folder of definition files and of modules with workflows at the start, and reports every mistake with its place.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { LongshoreError } from "../core/errors.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { Runs } from "../engine/run/runs.ts";
import type { DefinitionFile } from "../protocols/server-half.ts";
import type { ParseDefinition } from "./definition-file.ts";
import { isWorkflowModule } from "./workflow-module.ts";

/** What a server has read from its definition files at its start. */
export interface LoadedWorkflows {
  readonly defined: readonly { file: string; definition: Definition }[];
  /** Each warning, with the file and for definition files as `file:line:column: text`. */
  readonly warnings: readonly string[];
  /** Files that were left out, each with an error whose message begins with the file, for definition files as `file:line:column`. */
  readonly bad: readonly LongshoreError[];
}

export const noWorkflows: LoadedWorkflows = { defined: [], warnings: [], bad: [] };

/** A folder with more definition files is probably the wrong folder. */
const filesMax = 5_000;
const endings = /\.(ya?ml|json)$/;
/** Files of a project that have nothing to do with workflows. */
const projectFiles = /^(package(-lock)?|[tj]sconfig(\..+)?|longshore\.config)\.(json|ya?ml)$/;

/**
 * Reads every file before anything is defined. With `onBad` "refuse", one mistake refuses the whole folder; with "skip", only the bad files
 * are left out.
 */
export async function loadWorkflows(
  directory: string,
  runs: Pick<Runs, "defineNamed">,
  onBad: "refuse" | "skip",
): Promise<LoadedWorkflows> {
  // The parser is loaded only when there are files.
  const { definitionParser } = await import("./definition-file.ts");
  const parseDefinition = await definitionParser();
  const bad: LongshoreError[] = [];
  const warnings: string[] = [];
  const parsed = new Map<string, { file: string; workflow: DefinitionFile }>();
  for (const name of filesOf(directory)) {
    const file = join(directory, name);
    try {
      for (const workflow of await read(file, name, parseDefinition, (message) => warnings.push(message))) {
        const other = parsed.get(workflow.name);
        // Two modules may export the same workflow.
        if (other?.workflow.source === workflow.source && isWorkflowModule(name)) continue;
        if (other !== undefined)
          throw inFile(file, `The name ${workflow.name} is taken by ${other.file}.`, { expected: "another file name" });
        parsed.set(workflow.name, { file, workflow });
      }
    } catch (error) {
      if (!(error instanceof LongshoreError) || onBad === "refuse") throw error;
      bad.push(error);
    }
  }
  const defined: LoadedWorkflows["defined"][number][] = [];
  for (const { file, workflow } of parsed.values()) {
    const { name, dialect, source } = workflow;
    const definition = await runs.defineNamed({ name, dialect, source });
    defined.push({ file, definition });
    for (const { message, line, column } of workflow.warnings) warnings.push(`${file}:${line}:${column}: ${message}`);
  }
  return { defined, warnings, bad };
}

async function read(
  file: string,
  name: string,
  parseDefinition: ParseDefinition,
  warn: (message: string) => void,
): Promise<DefinitionFile[]> {
  if (endings.test(name)) return [parse(file, (text) => parseDefinition(text, name))];
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
