// Options that several commands share, and the parsers of their values.

import { type Command, InvalidArgumentError, Option } from "commander";
import { type Duration, durationMs } from "../core/duration.ts";
import { dataDefault, portDefault } from "../server/config.ts";
import { warn } from "./failure.ts";

/** The address of a server that was started without options. */
const defaultUrl = `http://127.0.0.1:${portDefault}`;

/** The end of a command that is printed for people: ` --on URL`, or empty when the default reaches the server of `url`. */
export function onOption(url: string): string {
  return url === defaultUrl ? "" : ` --on ${url}`;
}

const portMax = 65_535;

export interface ConnectionOptions {
  on: string;
  token?: string;
}

/** The options for the server's address and the token. */
export function withConnection(command: Command): Command {
  return warnOfTypedToken(command)
    .addOption(new Option("--on <url>", "the server").env("LONGSHORE_URL").default(defaultUrl))
    .addOption(new Option("--token <secret>", "the token for the server; safer in the environment").env("LONGSHORE_TOKEN"));
}

/** For commands that change runs. */
export interface RecordOptions extends ConnectionOptions {
  record?: string;
}

export function withRecord(command: Command): Command {
  return withConnection(command).option("--record <file>", "append every acknowledgement of the server to a file for `longshore verify`");
}

/** Warns when a token is among the arguments: other users of the machine can read them. */
function warnOfTypedToken(command: Command): Command {
  return command.hook("preAction", (_command, action) => {
    if (action.getOptionValueSource("token") === "cli")
      warn(`${typedToken} Give it in LONGSHORE_TOKEN instead.`, action.opts<{ json?: boolean }>().json === true);
  });
}

export const typedToken = "A token in --token can be read by every user of this machine, in the list of processes.";

/** Warns when the value of a flag has a password: other users of the machine can read it. */
export function typedPassword(flag: string): string {
  return `A password in ${flag} can be read by every user of this machine, in the list of processes.`;
}

/** The option for the port of a server. */
export function withPort(command: Command): Command {
  return command.option("--port <number>", "port to listen on; 0 takes any free port", parsePort, portDefault);
}

export function withData(command: Command): Command {
  return command.option("--data <folder>", "data folder", dataDefault);
}

export function withJson(command: Command): Command {
  return command.option("--json", "print JSON instead of text");
}

/** Examples at the end of a command's help: the command line and its meaning. */
export function withExamples(command: Command, examples: readonly (readonly [line: string, meaning: string])[], rest = ""): Command {
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, meaning]) => `  $ ${line.padEnd(width)}   ${meaning}`.trimEnd());
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}${rest === "" ? "" : `\n\n${rest}`}`);
}

export function parsePort(text: string): number {
  const port = wholeNumber(text);
  if (port > portMax) throw new InvalidArgumentError(`Expected a port from 0 to ${portMax}; 0 takes any free one.`);
  return port;
}

export function parseCount(text: string): number {
  const count = wholeNumber(text);
  if (count < 1) throw new InvalidArgumentError("Expected a whole number above 0.");
  return count;
}

/** A whole number that may be below zero. */
export function parseInteger(text: string): number {
  return text.startsWith("-") ? -wholeNumber(text.slice(1)) : wholeNumber(text);
}

/** Parses `30s`, `5m` or milliseconds. */
export function parseDuration(text: string): Duration {
  try {
    return durationMs(/^\d+$/.test(text) ? Number(text) : text, "It");
  } catch {
    throw new InvalidArgumentError('Expected a duration such as "500ms", "30s", "5m" or "7d".');
  }
}

/** Parses `a,b`; repeated options are joined. */
export function parseList(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(",").map((item) => item.trim())].filter((item) => item !== "");
}

/** For values that may contain commas: each use of the option adds one value. */
export function parseRepeated(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Expected a whole number.");
  return Number(text);
}
