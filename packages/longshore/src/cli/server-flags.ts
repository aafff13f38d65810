// The flags of the server, and what they mean to `serve()`.

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import { systemClock } from "../clock.ts";
import { type Duration, durationMs } from "../duration.ts";
import { quotaDefaults } from "../quotas.ts";
import { retentionDefault } from "../run/retention.ts";
import type { ServeOptions } from "../server/index.ts";
import { parseToken, readTokenFile, type Token } from "../server/listener/auth.ts";
import { createLogger, type LogLevel } from "../server/logger.ts";
import { CommandFailure } from "./failure.ts";
import { parseCount, parseDuration, parseList, parseRepeated, typedToken, withData, withPort } from "./options.ts";

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
  logLevel: LogLevel;
}

export function withServerFlags(command: Command, defaults: { logLevel: LogLevel } = { logLevel: "info" }): Command {
  return withData(withPort(command))
    .option("--host <address>", "on which address; beyond loopback, tokens are needed", "127.0.0.1")
    .addOption(new Option("--ephemeral", "keep everything in memory; nothing survives").conflicts("data"))
    .option("--accept-damage", "serve what can be read of a damaged data file, instead of refusing to start")
    .option("--workflows <folder>", "load its *.yml, *.yaml and *.json at the start")
    .option("--stepflow-config <file>", "plugins and routes for flows of Stepflow; may start their workers")
    .option("--stepflow-files <folder>", "files that flows of Stepflow may read by load_file; none without it")
    .option("--stepflow-env <names>", "variables of the environment that flows may read by env_var; none without it", parseList)
    .option("--flowkit-brokers <list>", "brokers of Kafka where workers of FlowKit are met; without them they come here")
    .option("--flowkit-mongo <url>", "a MongoDB that workers of FlowKit share; without one they keep artifacts here")
    .option("--flowkit-config <file>", "the settings of FlowKit's coordinator, as JSON")
    .option("--token <token>", "accept this token; may be repeated; better in --token-file, for process lists show it", parseRepeated)
    .option("--token-file <file>", "tokens, one a line")
    .option("--insecure", "serve beyond loopback although nobody is asked for a token")
    .option("--origin <origins>", "web origins whose pages may call, such as https://ops.example", parseList)
    .option("--allow-host <names>", "further names by which this server is called", parseList)
    .option("--tls-cert <file>", "speak TLS with this certificate, as PEM; with --tls-key")
    .option("--tls-key <file>", "the key of the certificate, as PEM")
    .option("--keep-for <duration>", "how long runs are kept after their end", parseDuration, "30d")
    .option("--keep-runs <number>", "how many of them at most", parseCount, retentionDefault.runs.count)
    .option("--keep-logs <duration>", "how long their logs are kept, when that is shorter", parseDuration, "30d")
    .option("--blob-bytes <number>", "bytes that all blobs together may have", parseCount, quotaDefaults.blobBytes)
    .addOption(
      new Option("--log-level <level>", "least level that is logged")
        .choices(["debug", "info", "warn", "error", "silent"])
        .default(defaults.logLevel),
    );
}

export function serveOptions(flags: ServerFlags, log: { format: "json" | "text" }): ServeOptions {
  // Read here once as well, so that a mistake is told in the words of the command line.
  parseFlags(flags.token);
  if (flags.token !== undefined) warnOfTypedTokens(flags.logLevel, log.format);
  return {
    port: flags.port,
    host: flags.host,
    ...(flags.ephemeral ? { ephemeral: true } : { data: resolve(flags.data) }),
    acceptDamage: flags.acceptDamage,
    ...(flags.workflows === undefined ? {} : { workflows: resolve(flags.workflows) }),
    stepflow: stepflowOf(flags),
    ...flowkitOf(flags),
    tokens: flags.token,
    tokenFile: flags.tokenFile,
    insecure: flags.insecure,
    origins: flags.origin,
    hosts: flags.allowHost,
    tls: tlsOf(flags),
    ...(flags.tlsKey === undefined ? {} : { secretFiles: [flags.tlsKey] }),
    retention: {
      runs: { ageMs: durationMs(flags.keepFor, "--keep-for"), count: flags.keepRuns },
      logs: { ageMs: durationMs(flags.keepLogs, "--keep-logs") },
    },
    quotas: { blobBytes: flags.blobBytes },
    logger: { level: flags.logLevel, format: log.format },
  };
}

function stepflowOf({ stepflowConfig, stepflowFiles, stepflowEnv }: ServerFlags): NonNullable<ServeOptions["stepflow"]> {
  return {
    ...(stepflowConfig === undefined ? {} : { config: resolve(stepflowConfig) }),
    ...(stepflowFiles === undefined ? {} : { files: resolve(stepflowFiles) }),
    ...(stepflowEnv === undefined ? {} : { variables: stepflowEnv }),
  };
}

function flowkitOf({ flowkitBrokers, flowkitMongo, flowkitConfig }: ServerFlags): Pick<ServeOptions, "flowkit"> {
  if (flowkitBrokers === undefined && flowkitMongo === undefined && flowkitConfig === undefined) return {};
  return {
    flowkit: {
      ...(flowkitBrokers === undefined ? {} : { brokers: flowkitBrokers }),
      ...(flowkitMongo === undefined ? {} : { mongo: flowkitMongo }),
      ...(flowkitConfig === undefined ? {} : { config: resolve(flowkitConfig) }),
    },
  };
}

/** A secret by which a worker of this very process is let in; undefined when nobody is asked for one. */
export function workerToken({ token = [], tokenFile }: ServerFlags): string | undefined {
  const given = parseFlags(token);
  const tokens = tokenFile === undefined ? given : [...given, ...readTokenFile(tokenFile)];
  return tokens.find(({ scopes }) => scopes.includes("worker") || scopes.includes("operator"))?.secret;
}

function tlsOf({ tlsCert, tlsKey }: ServerFlags): ServeOptions["tls"] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) throw new CommandFailure("TLS needs both --tls-cert and --tls-key.");
  return { cert: readPem("--tls-cert", tlsCert), key: readPem("--tls-key", tlsKey) };
}

function readPem(flag: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new CommandFailure(`the file of ${flag} cannot be read: ${(cause as Error).message}.`, undefined, { cause });
  }
}

/** In the form of the log that it goes to. */
function warnOfTypedTokens(level: LogLevel, format: "json" | "text"): void {
  const logger = createLogger({ level, format, write: (line) => process.stderr.write(`${line}\n`), clock: systemClock });
  logger.warn(`${typedToken} Give a file with --token-file instead.`);
}

function parseFlags(texts: readonly string[] = []): Token[] {
  return texts.map((text, at) => parseToken(text, texts.length === 1 ? "--token" : `--token number ${at + 1}`));
}
