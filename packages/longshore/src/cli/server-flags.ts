// The flags of the server, and the conversion of its settings to the options of `serve()`.

import { resolve } from "node:path";
import type { Command } from "commander";
import { systemClock } from "../core/clock.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import { createLogger, type Logger, type LogLevel } from "../core/logger.ts";
import { byteQuotas, type Quotas, storedKinds } from "../core/quotas.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import { parseToken, type Token } from "../net/listener/auth.ts";
import { type ProtocolOptions, protocols } from "../protocols/index.ts";
import type { FlagReading } from "../protocols/protocol.ts";
import { dataDefault } from "../server/config.ts";
import { describeStore } from "../server/external-store.ts";
import type { Config, ServeOptions } from "../server/index.ts";
import { CommandFailure } from "./failure.ts";
import { typedPassword, typedToken } from "./options.ts";
import { configVariable } from "./resolved-settings.ts";
import { serverSettings } from "./server-settings.ts";
import { type ServerCommand, withSetting } from "./setting.ts";

const protocolFlags = protocols.flatMap(({ flags }) => (flags === undefined ? [] : [flags]));

/** The values of the settings in server-settings.ts, by name: a configuration with its default values. */
export interface ServerFlags extends Omit<Config, "tokens"> {
  port: number;
  host: string;
  token?: string[];
  origin?: string[];
  allowHost?: string[];
  keepFor: Duration;
  keepRuns: number;
  keepLogs: Duration;
  blobBytes: number;
  documentBytes: number;
  partBytes: number;
  busBytes: number;
  logBytes: number;
  attemptBytes: number;
  logLevel: LogLevel;
  /** The flags of protocols. */
  [flag: string]: unknown;
}

/** The flags of a command that starts a server. Without a command: the flags of all of them. */
export function withServerFlags(command: Command, target?: ServerCommand): Command {
  return serverSettings
    .filter(({ only }) => target === undefined || only === undefined || only === target)
    .reduce((flagged, one) => withSetting(flagged, one, target), command)
    .option("--config <file>", `configuration file (default: ${configVariable}, else longshore.config.ts, .mjs, .json or .yaml)`);
}

/** The last lines of the help of a command that starts a server. */
export const settingsHelp = `Each option can also be set as a variable, such as LONGSHORE_KEEP_FOR for --keep-for, or in the configuration file as keepFor.
The command line overrides the environment, which overrides the file. \`longshore config\` shows where each value comes from.`;

/** The format of the log, and which settings are among the arguments of the process. */
interface Around {
  readonly format: "json" | "text";
  /** Default: all. */
  readonly isTyped?: (name: string) => boolean;
}

export function serveOptions(flags: ServerFlags, log: Around): ServeOptions {
  // Tokens are parsed here too, so that an error message names the flag.
  if (log.isTyped?.("token") ?? true) parseFlags(flags.token);
  // The text is empty when a shell variable is not set. It must not become the path of the folder.
  if (flags.store === "") throw new CommandFailure("--store is empty: name the address of PostgreSQL.");
  warnOfTyped(flags, log);
  return {
    port: flags.port,
    host: flags.host,
    ...placeOf(flags),
    acceptDamage: flags.acceptDamage,
    ...(flags.workflows === undefined ? {} : { workflows: resolve(flags.workflows) }),
    ...protocolOptions(flags, log),
    tokens: flags.token,
    tokenFile: flags.tokenFile,
    insecure: flags.insecure,
    origins: flags.origin,
    hosts: flags.allowHost,
    ui: flags.ui,
    tls: tlsOf(flags),
    secretFiles: [...(flags.tlsKey === undefined ? [] : [flags.tlsKey]), ...protocolFlags.flatMap((one) => one.secretFiles?.(flags) ?? [])],
    retention: {
      runs: { ageMs: durationMs(flags.keepFor, "--keep-for"), count: flags.keepRuns },
      logs: { ageMs: durationMs(flags.keepLogs, "--keep-logs") },
    },
    quotas: quotasOf(flags),
    logger: { level: flags.logLevel, format: log.format },
  };
}

/** The options that say where the data is and which servers share it. */
type Place = "store" | "lease" | "advertise" | "ephemeral" | "data";

function placeOf({ store, lease, advertise, ephemeral, data }: ServerFlags): Pick<ServeOptions, Place> {
  if (store !== undefined) return { store, lease, advertise };
  if (advertise !== undefined) throw new CommandFailure("--advertise is for data in PostgreSQL: give --store as well.");
  if (lease !== undefined) throw new CommandFailure("--lease is for data in PostgreSQL: give --store as well.");
  return ephemeral ? { ephemeral: true } : { data: resolve(data ?? dataDefault) };
}

function quotasOf(flags: ServerFlags): Partial<Quotas> {
  return Object.fromEntries(storedKinds.map((kind) => [byteQuotas[kind].quota, flags[byteQuotas[kind].quota]]));
}

/** Converts the flags of protocols to options of `serve()`. */
function protocolOptions(flags: ServerFlags, { format, isTyped = () => true }: Around): ProtocolOptions {
  const { warn } = loggerFor(flags, format);
  const around: FlagReading = {
    isTyped,
    warn,
    read: (flag, file) => readFlagFile(flag, file).toString("utf8"),
    failure: (message) => new CommandFailure(message),
  };
  return Object.assign({}, ...protocolFlags.map((one) => one.options(flags, around)));
}

function tlsOf({ tlsCert, tlsKey }: ServerFlags): ServeOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw new CommandFailure("TLS needs both --tls-cert and --tls-key.");
  return { cert: readFlagFile("--tls-cert", tlsCert), key: readFlagFile("--tls-key", tlsKey) };
}

function readFlagFile(flag: string, file: string): Buffer {
  try {
    return readNamedFile(file);
  } catch (cause) {
    throw new CommandFailure(`the file of ${flag} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}

/** Warns when secrets are among the arguments: other users of the machine can read them. */
function warnOfTyped(flags: ServerFlags, { format, isTyped = () => true }: Around): void {
  const { warn } = loggerFor(flags, format);
  if (flags.token !== undefined && isTyped("token")) warn(`${typedToken} Give a file with --token-file instead.`);
  if (isTyped("store") && flags.store !== undefined && describeStore(flags.store).hasPassword)
    warn(`${typedPassword("--store")} Give the address in LONGSHORE_STORE, or the password in PGPASSWORD, instead.`);
}

/** A warning about a flag has the format of the configured log. */
function loggerFor({ logLevel: level }: ServerFlags, format: "json" | "text"): Logger {
  return createLogger({ level, format, write: (line) => process.stderr.write(`${line}\n`), clock: systemClock });
}

function parseFlags(texts: readonly string[] = []): Token[] {
  return texts.map((text, at) => parseToken(text, texts.length === 1 ? "--token" : `--token number ${at + 1}`));
}
