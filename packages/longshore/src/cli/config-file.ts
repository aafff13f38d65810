// The configuration file of a server: `longshore.config.ts`, `.mjs`, `.json` or `.yaml` in the working directory, or the file of `--config`.

import { existsSync } from "node:fs";
import { extname, relative } from "node:path";
import { LongshoreError } from "../core/errors.ts";
import { type Place, readFile } from "../core/file-place.ts";
import { importFile } from "../core/load.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import { CommandFailure } from "./failure.ts";

export interface ConfigFile {
  /** The path as the user wrote it, or as it was found. */
  readonly file: string;
  readonly entries: readonly ConfigEntry[];
}

export interface ConfigEntry {
  readonly key: string;
  readonly value: unknown;
  /** The place of a setting, such as `longshore.config.json:3:5`. For a module only the file. */
  readonly place: string;
}

/** The names in the order of the search. A folder with two of these files is refused. */
const names = ["ts", "mjs", "json", "yaml"].map((ending) => `longshore.config.${ending}`);

const modules = [".ts", ".mts", ".mjs", ".js"];
const texts = [".json", ".yaml", ".yml"];

/** Reads the file that was named, else the one in the working directory. Undefined when there is no file. */
export async function readConfigFile(named: string | undefined): Promise<ConfigFile | undefined> {
  const file = named ?? findFile();
  if (file === undefined) return undefined;
  const ending = extname(file);
  if (texts.includes(ending)) return { file, entries: textEntries(file, ending) };
  if (modules.includes(ending)) return { file, entries: await moduleEntries(file) };
  throw bad(
    `the configuration file ${file} ends with ${ending === "" ? "nothing" : ending}, expected ${[...modules, ...texts].join(", ")}.`,
  );
}

function findFile(): string | undefined {
  const found = names.filter((name) => existsSync(name));
  if (found.length > 1) throw bad(`there are several configuration files: ${found.join(", ")}. Keep one, or name it with --config.`);
  return found[0];
}

function textEntries(file: string, ending: string): ConfigEntry[] {
  try {
    const { root } = readFile(readNamedFile(file).toString("utf8"), { json: ending === ".json", code: "LONGSHORE_BAD_CONFIG" });
    if (root.kind !== "map" && root.kind !== "null")
      throw root.refuse("A configuration is not a list or a single value.", "a map of settings");
    return root.entries().map(({ key, at, value }) => ({ key, value: value.json(), place: placeOf(file, at) }));
  } catch (error) {
    if (!(error instanceof LongshoreError)) throw bad(`the configuration file ${file} cannot be read: ${(error as Error).message}.`, error);
    throw bad(`${located(file, error)}: ${error.message}`, error);
  }
}

function placeOf(file: string, at: Place): string {
  return located(file, at.refuse("", ""));
}

function located(file: string, { detail: { line, column } }: LongshoreError): string {
  return line === undefined ? file : `${file}:${line}:${column}`;
}

async function moduleEntries(file: string): Promise<ConfigEntry[]> {
  const exported = (await importFile(file)).default;
  // A module that was compiled to CommonJS has its default export one level deeper.
  const config = isRecord(exported) && isRecord(exported.default) ? exported.default : exported;
  if (!isRecord(config)) throw bad(`${file} has no configuration as its default export. Write \`export default defineConfig({ ... })\`.`);
  const place = relative(process.cwd(), file) || file;
  return Object.entries(config).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value, place }]));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bad(message: string, cause?: unknown): CommandFailure {
  return new CommandFailure(message, undefined, { cause, code: "LONGSHORE_BAD_CONFIG" });
}
