// The options of a server, and what follows from them before anything is opened.

import { resolve } from "node:path";
import type { KafkaBusOptions } from "../bus/kafka.ts";
import type { Clock } from "../clock.ts";
import type { RetentionSettings } from "../engine/run/retention.ts";
import type { SensitiveDetector } from "../protocols/flowkit/dialect/sensitive.ts";
import type { CoordinatorConfig } from "../protocols/flowkit/server/coordinator/config.ts";
import type { CoordinatorFunction } from "../protocols/flowkit/server/coordinator/functions.ts";
import type { Quotas } from "../quotas.ts";
import { parseToken, readTokenFile, type Token } from "./listener/auth.ts";
import type { HttpLimits } from "./listener/limits.ts";
import type { ServerTls } from "./listener/tls.ts";
import { createLogger, type Logger, type LoggerOptions } from "./logger.ts";

/** The options of `serve()`. */
export interface ServeOptions {
  /** The folder of the data file; `.longshore` when absent. */
  data?: string;
  /** Keep everything in memory: nothing survives the process. */
  ephemeral?: boolean;
  /** Serve a damaged data file: what can still be read of it. Without this, a damaged file is refused. */
  acceptDamage?: boolean;
  /** 4500 when absent; 0 takes any free port; null opens no socket. */
  port?: number | null;
  /** 127.0.0.1 when absent. Another address needs tokens, or `insecure`. */
  host?: string;
  /** Speak TLS: a certificate and its key, as PEM. */
  tls?: ServerTls;
  /** Who may call, as `SECRET`, `SCOPES:SECRET` or `SCOPES:SECRET:NAME`. Without any, callers are not authenticated. */
  tokens?: readonly string[];
  /** A file with one token a line. */
  tokenFile?: string;
  /** Further files with secrets, such as the key of `tls`: no flow reads them, wherever they are. The token file is always one. */
  secretFiles?: readonly string[];
  /** Serve beyond loopback although callers are not authenticated. */
  insecure?: boolean;
  /** Web origins whose pages may call; none by default. */
  origins?: readonly string[];
  /** Further names in the Host header that are answered. */
  hosts?: readonly string[];
  /** A folder of definition files (.yaml, .yml, .json) that are defined at the start. */
  workflows?: string;
  /** What a definition file with a mistake does: `refuse` (the default) the start, or be reported and left out. */
  badWorkflows?: "refuse" | "skip";
  /** Define the sample workflow `ci-1` when nothing else is defined. */
  sample?: boolean;
  /** Which plugins and routes flows of Stepflow have. */
  stepflow?: StepflowOptions;
  /** How workers of FlowKit connect, and how they are coordinated. A server without a port coordinates them only when this is given. */
  flowkit?: FlowkitOptions;
  /** How long ended runs are kept. Default: a month or half a million runs. */
  retention?: RetentionSettings;
  /** What is logged and where. Default: warnings and worse, as text, to standard error. Tokens never appear. */
  logger?: Partial<Pick<LoggerOptions, "level" | "format" | "write">>;
  limits?: Partial<HttpLimits>;
  /** What callers may fill altogether: 64 GiB of blobs and 100,000 open runs below one root by default. */
  quotas?: Partial<Quotas>;
  clock?: Clock;
}

export interface StepflowOptions {
  /**
   * A configuration file of Stepflow, or a folder with one. It may start programs: name only what you would run yourself. Without one,
   * workers may connect to the queues `python` and `default`, and workers of every other protocol serve the rest.
   */
  config?: string;
  /** `host:port` under which workers reach this server, when it is not where they came; `STEPFLOW_ORCHESTRATOR_URL`. */
  orchestratorUrl?: string;
  /** A folder whose files `load_file` may read, and so everyone who may start a run. None when absent, and never the working directory. */
  files?: string;
  /** Variables of this process's environment that flows may read by `env_var`, and so everyone who may start a run. None when absent. */
  variables?: readonly string[];
}

export type FlowkitKafka = Pick<
  KafkaBusOptions,
  "clientId" | "ssl" | "sasl" | "partitions" | "replicas" | "sessionMs" | "lookMs" | "patienceMs"
>;

export interface FlowkitOptions {
  /** Brokers of Kafka, such as `kafka:9092`, in a list or separated by commas. Without them the bus is in the data file. */
  brokers?: string | readonly string[];
  /**
   * A MongoDB that workers of FlowKit share, such as `mongodb://db/flowkit`: what they read there of tasks is kept there, and what they keep
   * there counts. Without it, workers keep their artifacts here.
   */
  mongo?: string;
  /** How to reach them: `ssl`, `sasl`, and how topics are created. */
  kafka?: FlowkitKafka;
  /** A file with the reference's `CoordinatorConfig` as JSON, or its settings. */
  config?: string | CoordinatorConfig;
  /** Functions for nodes of the type `coordinator_fn`, by the name that graphs call them. */
  functions?: { readonly [name: string]: CoordinatorFunction };
  /** Recognises secrets among variables. */
  sensitiveDetector?: SensitiveDetector;
}

/** The port of a server that is given none. */
export const portDefault = 4_500;
/** The data folder of a server that is given none. */
export const dataDefault = ".longshore";

/** The folder of the data file; null for memory. */
export function directoryOf(options: ServeOptions): string | null {
  return options.ephemeral ? null : resolve(options.data ?? dataDefault);
}

export function tokensOf(options: ServeOptions): Token[] {
  const given = (options.tokens ?? []).map((text, at) => parseToken(text, `tokens[${at}]`));
  return options.tokenFile === undefined ? given : [...given, ...readTokenFile(options.tokenFile)];
}

export function loggerOf(options: ServeOptions, clock: Clock, tokens: readonly Token[]): Logger {
  const { level = "warn", format = "text", write = (line: string) => process.stderr.write(`${line}\n`) } = options.logger ?? {};
  return createLogger({ level, format, write, clock, secrets: tokens.map((token) => token.secret) });
}
