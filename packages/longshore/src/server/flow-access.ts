// What flows of Stepflow may read of the machine that the server runs on: nothing, until a folder or a variable is named. Checked before
// anything is opened.

import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { LongshoreError } from "../errors.ts";
import { type FlowFiles, isBelow } from "../protocols/stepflow/server/builtin/load-file.ts";
import { directoryOf, type ServeOptions } from "./config.ts";

export interface FlowAccess {
  /** Null: `load_file` reads nothing. */
  readonly files: FlowFiles | null;
  /** Names of variables of the server's environment. */
  readonly variables: ReadonlySet<string>;
}

export function flowAccess(options: ServeOptions): FlowAccess {
  return { files: filesOf(options), variables: variablesOf(options.stepflow?.variables ?? []) };
}

function filesOf(options: ServeOptions): FlowFiles | null {
  const { files } = options.stepflow ?? {};
  if (files === undefined) return null;
  const folder = realFolder(files);
  const working = realpathSync(process.cwd());
  if (folder === working || isBelow(folder, working)) {
    const expected = "a folder that holds nothing but files for flows";
    throw bad(`The folder of files for flows is ${files}, which has the working directory in it`, expected, "files");
  }
  return { folder, hidden: secretPaths(options) };
}

function realFolder(files: string): string {
  const expected = "a folder that is there";
  try {
    if (statSync(files).isDirectory()) return realpathSync(files);
  } catch (cause) {
    throw bad(`The folder of files for flows is ${files}, which cannot be read: ${(cause as Error).message}`, expected, "files");
  }
  throw bad(`The folder of files for flows is ${files}, which is no folder`, expected, "files");
}

/** Where this server keeps what no flow may read, even inside the folder for flows. */
function secretPaths(options: ServeOptions): string[] {
  const { tokenFile, secretFiles = [], stepflow, flowkit } = options;
  const configs = [stepflow?.config, flowkit?.config].filter((config) => typeof config === "string");
  const paths = [directoryOf(options), tokenFile, ...secretFiles, ...configs];
  return paths.filter((path) => typeof path === "string").map((path) => resolve(path));
}

function variablesOf(names: readonly string[]): ReadonlySet<string> {
  for (const name of names) {
    if (!/^[A-Za-z_]\w*$/.test(name)) {
      throw bad(`${JSON.stringify(name)} is no name of an environment variable`, "letters, digits and _", "variables");
    }
  }
  return new Set(names);
}

function bad(what: string, expected: string, field: "files" | "variables"): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${what}; expected ${expected}.`, { detail: { field: `stepflow.${field}`, expected } });
}
