// Finds the program of a plugin. The operating system would search the PATH of the child's environment, which may have no PATH at all.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { LongshoreError } from "../../../../core/errors.ts";

export interface ProgramPlace {
  /** The plugin's name, for the message. */
  readonly plugin: string;
  readonly directory: string;
  /** The PATH of the child if it has one, else the server's. */
  readonly path: string | undefined;
}

/** The file to run. A name with a slash is relative to the directory. Throws LONGSHORE_BAD_CONFIG when there is none. */
export function findProgram(command: string, { plugin, directory, path }: ProgramPlace): string {
  const tried = command.includes("/")
    ? [resolve(directory, command)]
    : (path ?? "").split(delimiter).flatMap((folder) => (folder === "" ? [] : [join(resolve(directory, folder), command)]));
  const found = tried.find(isProgram);
  if (found !== undefined) return found;
  const where = command.includes("/") ? `${tried[0]} is not a program` : `no folder of PATH (${path || "which is empty"}) has it`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The program '${command}' of the plugin ${plugin} was not found: ${where}.`, {
    detail: { field: `plugins.${plugin}.command`, expected: "a program that can be run, by its path or by its name in PATH" },
  });
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Missing or not executable: the next folder may have it.
    return false;
  }
}
