// The flags of the server, and what they mean to `serve()`.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { type Duration, durationMs } from "../duration.ts";
import { retentionDefault } from "../engine/run/retention.ts";
import { type Environment, variable } from "../environment.ts";
import { byteQuotas, type Quotas, quotaDefaults, storedKinds } from "../quotas.ts";
import type { ServeOptions } from "../server/index.ts";
import { parseToken, type Token } from "../server/listener/auth.ts";
import { createLogger, type LogLevel } from "../server/logger.ts";
import { CommandFailure } from "./failure.ts";
import { parseCount, parseDuration, parseList, parseRepeated, typedToken, withData, withPort } from "./options.ts";

/** The address of FlowKit's database for a server, when it was not typed. The workers' variable has another name: theirs may be another one. */
const mongoVariable = "LONGSHORE_FLOWKIT_MONGO_URL";

export interface ServerFlags {
  port: number;
  host: string;
  data: string;
  ephemeral?: boolean;
  acceptDamage?: boolean;
  workflows?: string;
  stepflowConfig?: string;
  stepflowFiles?: string;
  stepflowEnv?: string[];
  flowkitBrokers?: string;
  flowkitMongo?: string;
  flowkitMongoFile?: string;
  flowkitConfig?: string;
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
  logLevel: LogLevel;
}

export function withServerFlags(command: Command, defaults: { logLevel: LogLevel } = { logLevel: "info" }): Command {
  return withQuotas(withData(withPort(command)))
    .option("--host <address>", "address to listen on; other than loopback requires tokens", "127.0.0.1")
    .addOption(new Option("--ephemeral", "keep all data in memory; nothing survives the process").conflicts("data"))
    .option("--accept-damage", "start although the data file is damaged, with the data that is readable")
    .option("--workflows <folder>", "define the *.yml, *.yaml and *.json files of this folder at the start")
    .option("--stepflow-config <file>", "plugins and routes for Stepflow flows; may start their workers")
    .option("--stepflow-files <folder>", "folder that Stepflow flows may read with load_file (default: none)")
    .option("--stepflow-env <names>", "environment variables that flows may read with env_var (default: none)", parseList)
    .option("--flowkit-brokers <list>", "Kafka brokers for FlowKit workers (default: the bus of this server)")
    .option("--flowkit-mongo <url>", "MongoDB that FlowKit workers share (default: the store of this server)")
    .addOption(
      new Option("--flowkit-mongo-file <file>", "file with the address of that MongoDB, for addresses with a password").conflicts(
        "flowkitMongo",
      ),
    )
    .option("--flowkit-config <file>", "settings of the FlowKit coordinator, a JSON file")
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
      new Option("--log-level <level>", "lowest level to log")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default(defaults.logLevel),
    );
}

export function serveOptions(flags: ServerFlags, log: { format: "json" | "text" }, env: Environment = process.env): ServeOptions {
  // Read here once as well, so that a mistake is reported in the words of the command line.
  parseFlags(flags.token);
  warnOfTyped(flags, log.format);
  return {
    port: flags.port,
    host: flags.host,
    ...(flags.ephemeral ? { ephemeral: true } : { data: resolve(flags.data) }),
    acceptDamage: flags.acceptDamage,
    ...(flags.workflows === undefined ? {} : { workflows: resolve(flags.workflows) }),
    stepflow: stepflowOf(flags),
    ...flowkitOf(flags, env),
    tokens: flags.token,
    tokenFile: flags.tokenFile,
    insecure: flags.insecure,
    origins: flags.origin,
    hosts: flags.allowHost,
    tls: tlsOf(flags),
    secretFiles: [flags.tlsKey, flags.flowkitMongoFile].filter((file) => file !== undefined),
    retention: {
      runs: { ageMs: durationMs(flags.keepFor, "--keep-for"), count: flags.keepRuns },
      logs: { ageMs: durationMs(flags.keepLogs, "--keep-logs") },
    },
    quotas: quotasOf(flags),
    logger: { level: flags.logLevel, format: log.format },
  };
}

/** One for each kind that is stored. */
function withQuotas(command: Command): Command {
  return storedKinds.reduce((flagged, kind) => {
    const { flag, what, quota } = byteQuotas[kind];
    return flagged.option(`${flag} <number>`, `maximum total size of ${what}, in bytes`, parseCount, quotaDefaults[quota]);
  }, command);
}

function quotasOf(flags: ServerFlags): Partial<Quotas> {
  return Object.fromEntries(storedKinds.map((kind) => [byteQuotas[kind].quota, flags[byteQuotas[kind].quota]]));
}

function stepflowOf({ stepflowConfig, stepflowFiles, stepflowEnv }: ServerFlags): NonNullable<ServeOptions["stepflow"]> {
  return {
    ...(stepflowConfig === undefined ? {} : { config: resolve(stepflowConfig) }),
    ...(stepflowFiles === undefined ? {} : { files: resolve(stepflowFiles) }),
    ...(stepflowEnv === undefined ? {} : { variables: stepflowEnv }),
  };
}

function flowkitOf(flags: ServerFlags, env: Environment): Pick<ServeOptions, "flowkit"> {
  const { flowkitBrokers, flowkitConfig } = flags;
  const flowkitMongo = mongoOf(flags, env);
  if (flowkitBrokers === undefined && flowkitMongo === undefined && flowkitConfig === undefined) return {};
  return {
    flowkit: {
      ...(flowkitBrokers === undefined ? {} : { brokers: flowkitBrokers }),
      ...(flowkitMongo === undefined ? {} : { mongo: flowkitMongo }),
      ...(flowkitConfig === undefined ? {} : { config: resolve(flowkitConfig) }),
    },
  };
}

/** The address of the database: typed, from a file, or from the environment, in this order. */
function mongoOf({ flowkitMongo, flowkitMongoFile }: ServerFlags, env: Environment): string | undefined {
  if (flowkitMongo !== undefined) return flowkitMongo;
  if (flowkitMongoFile === undefined) return variable(env, mongoVariable);
  const url = readFlagFile("--flowkit-mongo-file", flowkitMongoFile).toString("utf8").trim();
  if (url === "")
    throw new CommandFailure(`the file of --flowkit-mongo-file, ${flowkitMongoFile}, is empty, expected the address of a MongoDB.`);
  return url;
}

function tlsOf({ tlsCert, tlsKey }: ServerFlags): ServeOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw new CommandFailure("TLS needs both --tls-cert and --tls-key.");
  return { cert: readFlagFile("--tls-cert", tlsCert), key: readFlagFile("--tls-key", tlsKey) };
}

function readFlagFile(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new CommandFailure(`the file of ${flag} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}

/** An argument is no place for a secret. The warning has the form of the log that it is written to. */
function warnOfTyped({ token, flowkitMongo, logLevel: level }: ServerFlags, format: "json" | "text"): void {
  const logger = createLogger({ level, format, write: (line) => process.stderr.write(`${line}\n`), clock: systemClock });
  if (token !== undefined) logger.warn(`${typedToken} Give a file with --token-file instead.`);
  if (flowkitMongo === undefined || !hasPassword(flowkitMongo)) return;
  const where = "can be read by every user of this machine, in the list of processes";
  logger.warn(
    `The password in --flowkit-mongo ${where}. Give the address in a file with --flowkit-mongo-file, or in ${mongoVariable}, instead.`,
  );
}

/** Whether a connection string of MongoDB has a user and a password before its hosts. */
function hasPassword(url: string): boolean {
  const authority = url.slice(url.indexOf("://") + 3).split("/", 1)[0] as string;
  return authority.slice(0, Math.max(0, authority.lastIndexOf("@"))).includes(":");
}

function parseFlags(texts: readonly string[] = []): Token[] {
  return texts.map((text, at) => parseToken(text, texts.length === 1 ? "--token" : `--token number ${at + 1}`));
}
