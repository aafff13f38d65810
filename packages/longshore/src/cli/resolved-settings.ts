// The value of each setting of the server and its source: command line, environment, configuration file or default, in this order.

import { dirname, relative, resolve } from "node:path";
import type { Command } from "commander";
import { type Environment, variable } from "../core/environment.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import { CommandFailure } from "./failure.ts";
import { serverSettings } from "./server-settings.ts";
import { defaultFor, expectedOf, type ServerCommand, type Setting, valueOfFile, valueOfText } from "./setting.ts";
import { nearNames } from "./suggestion.ts";

/** The strongest source first. */
const sources = ["command line", "environment", "file", "default"] as const;
export type Source = (typeof sources)[number];

export interface Resolved {
  readonly setting: Setting;
  readonly value: unknown;
  readonly source: Source;
  /** The flag, the variable, or the place in the file. */
  readonly place: string;
}

export interface ResolvedSettings {
  /** The settings that have a value, in the order of the table. */
  readonly list: readonly Resolved[];
  /** The settings that were given and that the command does not use. */
  readonly unused: readonly Resolved[];
  /** The values of the settings, by name. */
  readonly values: Readonly<Record<string, unknown>>;
  /** The file that was read. */
  readonly file: string | undefined;
  /** Returns whether the value of a setting is among the arguments of the process. */
  isTyped(name: string): boolean;
}

/** The variable that names the file. */
export const configVariable = "LONGSHORE_CONFIG";

/** Throws a CommandFailure for an unknown key, a bad value, or two settings that exclude each other. Its message names the place. */
export async function resolveSettings(command: Command, target: ServerCommand, env: Environment = process.env): Promise<ResolvedSettings> {
  const file = await readConfigFile(command.opts<{ config?: string }>().config ?? variable(env, configVariable));
  const inFile = fileValues(file);
  const given = serverSettings.flatMap((setting) => {
    const found = typedValue(command, setting) ?? variableValue(setting, env) ?? inFile.get(setting.name) ?? defaultValue(setting, target);
    return found === undefined ? [] : [found];
  });
  const isUsed = ({ setting: { only } }: Resolved) => only === undefined || only === target;
  const list = withoutConflicts(given.filter(isUsed));
  return {
    list,
    unused: given.filter((one) => !isUsed(one)),
    values: Object.fromEntries(list.map(({ setting, value }) => [setting.name, value])),
    file: file?.file,
    isTyped: (name) => list.some(({ setting, source }) => setting.name === name && source === "command line"),
  };
}

function typedValue(command: Command, setting: Setting): Resolved | undefined {
  if (command.getOptionValueSource(setting.name) !== "cli") return undefined;
  const [place = ""] = setting.flag.split(" ");
  return { setting, value: command.getOptionValue(setting.name), source: "command line", place };
}

/**
 * In a Kubernetes cluster with a service called longshore, LONGSHORE_PORT has such a value in each container. It is not a setting of the
 * server.
 */
const serviceLink = /^tcp:\/\//;

function variableValue(setting: Setting, env: Environment): Resolved | undefined {
  const names = [setting.variable, ...(setting.otherVariable === undefined ? [] : [setting.otherVariable])];
  const name = names.find((one) => variable(env, one) !== undefined);
  if (name === undefined) return undefined;
  const text = variable(env, name) as string;
  if (setting.kind === "port" && serviceLink.test(text)) return undefined;
  const value = valueOfText(setting, text);
  if (value === undefined) throw badValue(`the environment variable ${name}`, setting, text);
  return { setting, value, source: "environment", place: name };
}

function defaultValue(setting: Setting, target: ServerCommand): Resolved | undefined {
  const value = defaultFor(setting, target);
  return value === undefined ? undefined : { setting, value, source: "default", place: "" };
}

/** The keys are names of settings. */
function fileValues(file: ConfigFile | undefined): ReadonlyMap<string, Resolved> {
  const found = new Map<string, Resolved>();
  for (const { key, value: given, place } of file?.entries ?? []) {
    const setting = serverSettings.find((one) => one.key === key);
    if (setting === undefined) throw unknownKey(key, place);
    const value = valueOfFile(setting, given);
    if (value === undefined) throw badValue(`${place}: ${key}`, setting, given);
    found.set(setting.name, { setting, value: setting.kind === "path" ? besideFile(file, value) : value, source: "file", place });
  }
  return found;
}

/** A path in a file starts at the folder of the file. */
function besideFile(file: ConfigFile | undefined, path: unknown): string {
  const full = resolve(dirname(file?.file ?? ""), String(path));
  const short = relative(process.cwd(), full);
  return short === "" || short.startsWith("..") ? full : short;
}

/** When two settings exclude each other, the one from the stronger source is used. In the same source they are a mistake. */
function withoutConflicts(given: readonly Resolved[]): Resolved[] {
  const dropped = new Set<Resolved>();
  for (const one of given) {
    for (const name of one.setting.conflicts ?? []) {
      const other = given.find(({ setting }) => setting.name === name);
      if (other === undefined || one.value === false || other.value === false) continue;
      const difference = sources.indexOf(one.source) - sources.indexOf(other.source);
      if (difference === 0) throw bad(`${nameIn(one)} and ${nameIn(other)} exclude each other. Remove one of them.`);
      dropped.add(difference < 0 ? other : one);
    }
  }
  return given.filter((one) => !dropped.has(one));
}

function nameIn({ setting, source, place }: Resolved): string {
  return source === "file" ? `${setting.key} (${place})` : place;
}

function unknownKey(key: string, place: string): CommandFailure {
  const near = nearNames(
    key,
    serverSettings.map((one) => one.key),
    1,
  );
  const hint = near.length === 0 ? "`longshore config` lists the settings." : `Did you mean ${near[0]}?`;
  return bad(`${place}: there is no setting ${key}. ${hint}`);
}

/** The value of a secret is not in the message. */
function badValue(where: string, setting: Setting, value: unknown): CommandFailure {
  const is = setting.shown === undefined ? `is ${JSON.stringify(value)}, expected` : "is not";
  return bad(`${where} ${is} ${expectedOf(setting)}.`);
}

function bad(message: string): CommandFailure {
  return new CommandFailure(message, undefined, { code: "LONGSHORE_BAD_CONFIG" });
}
