// One setting of the server: its flag, environment variable, key in a configuration file, and accepted values.

import { type Command, InvalidArgumentError, Option } from "commander";
import { logLevels } from "../core/logger.ts";
import { parseCount, parseDuration, parseList, parsePort, parseRepeated } from "./options.ts";

/** The commands that start a server. */
export type ServerCommand = "dev" | "start";

export interface Setting {
  /** As help shows it, such as `--keep-for <duration>`. */
  readonly flag: string;
  /** The name of its value among the options of a command. */
  readonly name: string;
  /** The key of the setting in a configuration file. */
  readonly key: string;
  readonly variable: string;
  /** The variable that is read when the setting's own variable is absent. */
  readonly otherVariable?: string;
  readonly description: string;
  readonly kind: Kind;
  readonly default?: string | number;
  /** Where the default depends on the command. */
  readonly defaults?: Readonly<Record<ServerCommand, string>>;
  /** The names of settings that cannot be used together with it. */
  readonly conflicts?: readonly string[];
  /** The only command that uses it. Default: both. */
  readonly only?: ServerCommand;
  /** Returns the part of its value that may be shown. Default: the whole value. */
  readonly shown?: (value: unknown) => string;
}

export type Kind = "text" | "path" | "port" | "count" | "duration" | "switch" | "list" | "tokens" | "level";

interface Reading {
  /** Parses one value of the command line or of the environment. Throws InvalidArgumentError. */
  readonly parse: (text: string) => unknown;
  /** The types of its value in a file. */
  readonly types: readonly ("string" | "number" | "boolean" | "array")[];
  readonly expected: string;
}

const text = { parse: parseText, types: ["string"], expected: "a text" } as const;

const readings: Readonly<Record<Kind, Reading>> = {
  text,
  path: { ...text, expected: "the path of a file or folder" },
  port: { parse: parsePort, types: ["number"], expected: "a port from 0 to 65535" },
  count: { parse: parseCount, types: ["number"], expected: "a whole number above 0" },
  duration: { parse: parseDuration, types: ["string", "number"], expected: 'a duration such as "30s" or "7d", or milliseconds' },
  switch: { parse: parseSwitch, types: ["boolean"], expected: "true or false" },
  list: { parse: (value) => parseList(value), types: ["array", "string"], expected: "a list of texts" },
  // A token may have commas between its scopes, and never has a space.
  tokens: {
    parse: (value) => value.split(/\s+/).filter((token) => token !== ""),
    types: ["array", "string"],
    expected: "a list of tokens",
  },
  level: { parse: parseLevel, types: ["string"], expected: `one of ${logLevels.join(", ")}` },
};

/** Makes a setting. By default, `--keep-for` is the key `keepFor` and the variable `LONGSHORE_KEEP_FOR`. */
export function setting(flag: string, kind: Kind, description: string, more: Partial<Setting> = {}): Setting {
  const option = new Option(flag);
  const name = option.attributeName();
  const variable = `LONGSHORE_${option.name().toUpperCase().replaceAll("-", "_")}`;
  return { flag, name, key: name, variable, description, kind, ...more };
}

/** Adds the flag of a setting to a command; `config` stands for no single command, so it shows no default that depends on the command. */
export function withSetting(command: Command, one: Setting, target: ServerCommand | undefined): Command {
  const option = new Option(one.flag, one.description);
  if (one.kind === "tokens") option.argParser<string[]>(parseRepeated);
  else if (one.kind === "list") option.argParser<string[]>(parseList);
  else if (one.kind === "level") option.choices(logLevels);
  else if (one.kind !== "switch") option.argParser(readings[one.kind].parse);
  const value = defaultFor(one, target);
  if (value !== undefined) option.default(value);
  if (one.conflicts !== undefined) option.conflicts([...one.conflicts]);
  return command.addOption(option);
}

export function defaultFor(one: Setting, target: ServerCommand | undefined): string | number | undefined {
  return one.default ?? (target === undefined ? undefined : one.defaults?.[target]);
}

/** What is expected of its value, for messages. */
export function expectedOf(one: Setting): string {
  return readings[one.kind].expected;
}

/** The value of an environment variable; undefined when it is not accepted. */
export function valueOfText(one: Setting, given: string): unknown {
  try {
    return readings[one.kind].parse(given);
  } catch {
    // The caller's message has the name of the variable or the key, which the parser does not know.
    return undefined;
  }
}

/** The value of a key of a file; undefined when it is not accepted. */
export function valueOfFile(one: Setting, given: unknown): unknown {
  const type = Array.isArray(given) ? "array" : typeof given;
  if (given === "" || !readings[one.kind].types.some((known) => known === type)) return undefined;
  if (Array.isArray(given)) return given.every((each) => typeof each === "string" && each !== "") ? given : undefined;
  return valueOfText(one, String(given));
}

function parseText(given: string): string {
  return given;
}

function parseSwitch(given: string): boolean {
  if (["true", "1", "yes", "on"].includes(given.toLowerCase())) return true;
  if (["false", "0", "no", "off"].includes(given.toLowerCase())) return false;
  throw new InvalidArgumentError("true or false");
}

function parseLevel(given: string): string {
  if (logLevels.some((level) => level === given)) return given;
  throw new InvalidArgumentError(logLevels.join(", "));
}
