// The options of a server, and what follows from them before anything is opened.

import { resolve } from "node:path";
import type { Clock } from "../core/clock.ts";
import { createLogger, type Logger, type LoggerOptions } from "../core/logger.ts";
import type { Quotas } from "../core/quotas.ts";
import type { RetentionSettings } from "../engine/run/retention.ts";
import { parseToken, readTokenFile, type Token } from "../net/listener/auth.ts";
import type { HttpLimits } from "../net/listener/limits.ts";
import type { ServerTls } from "../net/listener/tls.ts";
import type { ProtocolOptions } from "../protocols/index.ts";

/** The options of `serve()`. */
export interface ServeOptions extends ProtocolOptions {
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
  /** How long ended runs are kept. Default: a month or half a million runs. */
  retention?: RetentionSettings;
  /** What is logged and where. Default: warnings and worse, as text, to standard error. Tokens never appear. */
  logger?: Partial<Pick<LoggerOptions, "level" | "format" | "write">>;
  limits?: Partial<HttpLimits>;
  /** What callers may fill altogether: 64 GiB of blobs and 100,000 open runs below one root by default. */
  quotas?: Partial<Quotas>;
  clock?: Clock;
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
