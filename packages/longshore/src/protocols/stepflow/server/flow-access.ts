// What Stepflow flows may read from the server's machine: nothing, except the folder and the variables that the operator has named. These
// are checked before anything is opened.

import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { LongshoreError } from "../../../core/errors.ts";
import { type FlowFiles, isBelow } from "./builtin/load-file.ts";
import type { StepflowOptions } from "./options.ts";

export interface FlowAccess {
  /** Null: `load_file` reads nothing. */
  readonly files: FlowFiles | null;
  /** Names of environment variables that flows may read. */
  readonly variables: ReadonlySet<string>;
}

/** `secretPaths` are paths that no flow may read, even inside the folder for flows. */
export function flowAccess({ files, variables }: StepflowOptions = {}, secretPaths: readonly string[] = []): FlowAccess {
  return { files: filesOf(files, secretPaths), variables: variablesOf(variables ?? []) };
}

function filesOf(files: string | undefined, secretPaths: readonly string[]): FlowFiles | null {
  if (files === undefined) return null;
  const folder = realFolder(files);
  const working = realpathSync(process.cwd());
  if (folder === working || isBelow(folder, working)) {
    const expected = "a folder that has only files for flows";
    throw bad(`The folder of files for flows is ${files}, which has the working directory in it`, expected, "files");
  }
  return { folder, hidden: secretPaths.map((path) => resolve(path)) };
}

function realFolder(files: string): string {
  const expected = "a folder that is there";
  try {
    if (statSync(files).isDirectory()) return realpathSync(files);
  } catch (cause) {
    throw bad(`The folder of files for flows is ${files}, which cannot be read: ${(cause as Error).message}`, expected, "files");
  }
  throw bad(`The folder of files for flows is ${files}, which is not a folder`, expected, "files");
}

function variablesOf(names: readonly string[]): ReadonlySet<string> {
  for (const name of names) {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw bad(`${JSON.stringify(name)} is not a name of an environment variable`, "letters, digits and _", "variables");
    }
  }
  return new Set(names);
}

function bad(what: string, expected: string, field: "files" | "variables"): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${what}; expected ${expected}.`, { detail: { field: `stepflow.${field}`, expected } });
}
