// Finds and reads the configuration file that the operator named. No other file is read, because a configuration can start programs.

import { readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Environment } from "../../../../core/environment.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { readNamedFile } from "../../../../core/read-named-file.ts";
import type { StepflowConfig } from "./config.ts";
import { parseConfig } from "./parse.ts";

export interface LoadedConfig {
  readonly config: StepflowConfig;
  /** `file:line:column: warning`. */
  readonly warnings: readonly string[];
}

/** The accepted names of a configuration file in a folder. */
const names = ["stepflow-config.yml", "stepflow-config.yaml", "stepflow_config.yml", "stepflow_config.yaml"];
const field = "stepflow.config";

/** `path` is a file, or a folder with one of the usual names in it. Throws LONGSHORE_BAD_CONFIG, beginning with `file:line:column`. */
export function loadConfig(path: string, environment: Environment = process.env): LoadedConfig {
  const file = fileAt(resolve(path));
  const text = read(file);
  try {
    const { config, warnings } = parseConfig(text, { file, environment });
    return { config, warnings: warnings.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`) };
  } catch (error) {
    if (error instanceof LongshoreError) throw inFile(file, error);
    throw error;
  }
}

function fileAt(path: string): string {
  if (!isFolder(path)) return path;
  const found = readdirSync(path).filter((name) => names.includes(name));
  const [name, other] = found.sort();
  if (name === undefined) throw refusal(`The folder ${path} has no configuration of Stepflow.`, `one of ${names.join(", ")}`);
  if (other !== undefined) throw refusal(`The folder ${path} has two configurations: ${found.join(" and ")}.`, "one of them, by its name");
  return join(path, name);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    // Reading the file will report what is wrong.
    return false;
  }
}

function read(file: string): string {
  try {
    return readNamedFile(file).toString();
  } catch (cause) {
    throw refusal(`The configuration of Stepflow cannot be read: ${(cause as Error).message}.`, "a file, YAML or JSON", cause);
  }
}

function inFile(file: string, error: LongshoreError): LongshoreError {
  const { line = 1, column = 1, field: where, expected } = error.detail;
  const about = where === undefined || where === "" ? "" : `${where}: `;
  const wanted = expected === undefined ? "" : ` Expected ${expected}.`;
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `${file}:${line}:${column}: ${about}${error.message}${wanted}`, {
    cause: error,
    detail: { ...error.detail, line, column },
  });
}

function refusal(message: string, expected: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field, expected } });
}
