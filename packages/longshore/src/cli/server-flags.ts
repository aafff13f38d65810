// The flags of the server, and their conversion to the options of `serve()`.

import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { systemClock } from "../core/clock.ts";
import { type Duration, durationMs } from "../core/duration.ts";
import type { Environment } from "../core/environment.ts";
import { createLogger, type Logger, type LogLevel } from "../core/logger.ts";
import { byteQuotas, type Quotas, quotaDefaults, storedKinds } from "../core/quotas.ts";
import { readNamedFile } from "../core/read-named-file.ts";
import { retentionDefault } from "../engine/run/retention.ts";
import { parseToken, type Token } from "../net/listener/auth.ts";
import { type ProtocolOptions, protocols } from "../protocols/index.ts";
import type { FlagReading } from "../protocols/protocol.ts";
import { describeStore } from "../server/external-store.ts";
import type { ServeOptions } from "../server/index.ts";
import { CommandFailure } from "./failure.ts";
import { parseCount, parseDuration, parseList, parseRepeated, typedPassword, typedToken, withData, withPort } from "./options.ts";

const protocolFlags = protocols.flatMap(({ flags }) => (flags === undefined ? [] : [flags]));

export interface ServerFlags {
  port: number;
  host: string;
  data: string;
  store?: string;
  lease?: Duration;
  advertise?: string;
  ephemeral?: boolean;
  acceptDamage?: boolean;
  workflows?: string;
  token?: string[];
  tokenFile?: string;
  insecure?: boolean;
  origin?: string[];
  allowHost?: string[];
  tlsCert?: string;
  tlsKey?: string;
  keepFor: Duration;
  keepRuns: number;
  keepLogs: Duration;
  blobBytes: number;
  documentBytes: number;
  partBytes: number;
  busBytes: number;
  logBytes: number;
  attemptBytes: number;
  otlpEndpoint?: string;
  logLevel: LogLevel;
  /** The flags of protocols. */
  [flag: string]: unknown;
}

export function withServerFlags(command: Command, defaults: { logLevel: LogLevel } = { logLevel: "info" }): Command {
  return withProtocolFlags(
    withQuotas(withData(withPort(command)))
      .option("--host <address>", "address to listen on; other than loopback requires tokens", "127.0.0.1")
      .addOption(new Option("--ephemeral", "keep all data in memory; nothing survives the process").conflicts("data"))
      .option("--accept-damage", "start although the data file is damaged, with the data that is readable")
      .option("--workflows <folder>", "define the YAML and JSON files of this folder, and the workflows of its modules, at the start"),
  )
    .option("--token <token>", "accept this token; may be repeated; --token-file is safer because process lists show this", parseRepeated)
    .option("--token-file <file>", "file with tokens, one per line")
    .option("--insecure", "listen on other addresses than loopback without requiring tokens")
    .option("--origin <origins>", "web origins whose pages may call this server, such as https://ops.example", parseList)
    .option("--allow-host <names>", "further host names of this server", parseList)
    .option("--tls-cert <file>", "TLS certificate, PEM; with --tls-key")
    .option("--tls-key <file>", "key of the TLS certificate, PEM")
    .option("--keep-for <duration>", "how long runs are kept after their end", parseDuration, "30d")
    .option("--keep-runs <number>", "maximum number of ended runs to keep", parseCount, retentionDefault.runs.count)
    .option("--keep-logs <duration>", "how long logs are kept, if shorter than --keep-for", parseDuration, "30d")
    .addOption(
      new Option("--otlp-endpoint <url>", "send spans of runs, steps and attempts to this OpenTelemetry collector").env(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
      ),
    )
    .addOption(
      new Option("--log-level <level>", "lowest level to log")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default(defaults.logLevel),
    );
}

/** The format of the log, and whether the address of the store is among the arguments of the process. */
interface Around {
  readonly format: "json" | "text";
  readonly isStoreTyped?: boolean;
}

export function serveOptions(flags: ServerFlags, log: Around, env: Environment = process.env): ServeOptions {
  // Parsed here too, so that an error message names the flag.
  parseFlags(flags.token);
  // A variable of the shell that is not set must not lead to an empty folder.
  if (flags.store === "") throw new CommandFailure("--store is empty: name the address of PostgreSQL.");
  warnOfTyped(flags, log);
  return {
    port: flags.port,
    host: flags.host,
    ...placeOf(flags),
    acceptDamage: flags.acceptDamage,
    ...(flags.workflows === undefined ? {} : { workflows: resolve(flags.workflows) }),
    ...protocolOptions(flags, log.format, env),
    tokens: flags.token,
    tokenFile: flags.tokenFile,
    insecure: flags.insecure,
    origins: flags.origin,
    hosts: flags.allowHost,
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

/** Where the data is, and who shares it. */
type Place = "store" | "lease" | "advertise" | "ephemeral" | "data";

function placeOf({ store, lease, advertise, ephemeral, data }: ServerFlags): Pick<ServeOptions, Place> {
  if (store !== undefined) return { store, lease, advertise };
  if (advertise !== undefined) throw new CommandFailure("--advertise is for data in PostgreSQL: give --store as well.");
  if (lease !== undefined) throw new CommandFailure("--lease is for data in PostgreSQL: give --store as well.");
  return ephemeral ? { ephemeral: true } : { data: resolve(data) };
}

/** The flags for data in PostgreSQL. */
export function withStore(command: Command, env: Environment = process.env): Command {
  const description = "keep the data in PostgreSQL: postgres://user@host/database?schema=longshore";
  const store = new Option("--store <url>", description).conflicts(["data", "ephemeral", "acceptDamage"]);
  // An empty variable counts as absent.
  if (env.LONGSHORE_STORE !== "") store.env("LONGSHORE_STORE");
  return command
    .addOption(store)
    .option("--lease <duration>", "with --store: how long a server that hangs keeps others out (default: 5s)", parseDuration)
    .option("--advertise <url>", "with --store: where other servers on the same data reach this one (default: where it listens)");
}

/** One flag for each kind of stored data. */
function withQuotas(command: Command): Command {
  return storedKinds.reduce((flagged, kind) => {
    const { flag, what, quota } = byteQuotas[kind];
    return flagged.option(`${flag} <number>`, `maximum total size of ${what}, in bytes`, parseCount, quotaDefaults[quota]);
  }, command);
}

function quotasOf(flags: ServerFlags): Partial<Quotas> {
  return Object.fromEntries(storedKinds.map((kind) => [byteQuotas[kind].quota, flags[byteQuotas[kind].quota]]));
}

function withProtocolFlags(command: Command): Command {
  return protocolFlags
    .flatMap(({ list }) => list)
    .reduce((flagged, { flag, description, isList, conflicts }) => {
      const option = new Option(flag, description);
      if (isList) option.argParser<string[]>(parseList);
      return flagged.addOption(conflicts === undefined ? option : option.conflicts(conflicts));
    }, command);
}

/** Converts the flags of protocols to options of `serve()`. */
function protocolOptions(flags: ServerFlags, format: "json" | "text", env: Environment): ProtocolOptions {
  const { warn } = loggerFor(flags, format);
  const around: FlagReading = {
    env,
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

/** Warns about secrets in the arguments, which other users of the machine can read. */
function warnOfTyped(flags: ServerFlags, { format, isStoreTyped }: Around): void {
  const { warn } = loggerFor(flags, format);
  if (flags.token !== undefined) warn(`${typedToken} Give a file with --token-file instead.`);
  if (isStoreTyped && flags.store !== undefined && describeStore(flags.store).hasPassword)
    warn(`${typedPassword("--store")} Give the address in LONGSHORE_STORE, or the password in PGPASSWORD, instead.`);
}

/** A warning about a flag has the format of the configured log. */
function loggerFor({ logLevel: level }: ServerFlags, format: "json" | "text"): Logger {
  return createLogger({ level, format, write: (line) => process.stderr.write(`${line}\n`), clock: systemClock });
}

function parseFlags(texts: readonly string[] = []): Token[] {
  return texts.map((text, at) => parseToken(text, texts.length === 1 ? "--token" : `--token number ${at + 1}`));
}
