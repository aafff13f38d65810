// The options of a server, and the values that are derived from them before anything is opened.

import { resolve } from "node:path";
import type { Clock } from "../core/clock.ts";
import type { Duration } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import { createLogger, type Logger, type LoggerOptions } from "../core/logger.ts";
import type { Quotas } from "../core/quotas.ts";
import type { SpanWriter } from "../core/trace.ts";
import type { RetentionSettings } from "../engine/run/retention.ts";
import { parseToken, readTokenFile, type Token } from "../net/listener/auth.ts";
import type { HttpLimits } from "../net/listener/limits.ts";
import type { ServerTls } from "../net/listener/tls.ts";
import type { ProtocolOptions } from "../protocols/index.ts";
import type { Telemetry } from "../runner/telemetry.ts";

/** The options of `serve()`. */
export interface ServeOptions extends ProtocolOptions {
  /** The folder of the data file. Default: `.longshore`. */
  data?: string;
  /** Keep everything in memory: nothing survives the process. */
  ephemeral?: boolean;
  /**
   * Keep the data in PostgreSQL (version 13 or newer), and not in a folder: `postgres://user@host:5432/database?schema=longshore`. When
   * several hosts are given, separated by commas, the first one that can be written is used. Needs the package `pg`. Set the password in
   * `PGPASSWORD`, not here.
   */
  store?: string;
  /** With `store`: after this time another server may take over the data of a server that hangs. From 1s to 60s. Default: 5s. */
  lease?: Duration;
  /** With `store`: the URL at which the other servers on the same data reach this one. Default: the address on which it listens. */
  advertise?: string;
  /** Serve a damaged data file, as far as it can be read. Default: a damaged file is refused. */
  acceptDamage?: boolean;
  /** Default: 4500. 0 takes any free port; null opens no socket. */
  port?: number | null;
  /** Default: 127.0.0.1. Another address needs tokens, or `insecure`. */
  host?: string;
  /** Serve over TLS: a certificate and its key, as PEM. */
  tls?: ServerTls;
  /** The tokens of callers, as `SECRET`, `SCOPES:SECRET` or `SCOPES:SECRET:NAME`. Without tokens, callers are not authenticated. */
  tokens?: readonly string[];
  /** A file with one token per line. */
  tokenFile?: string;
  /** Further files with secrets, such as the key of `tls`: no flow may read them. The token file is always included. */
  secretFiles?: readonly string[];
  /** Allow a `host` other than loopback without tokens, so without authentication of callers. */
  insecure?: boolean;
  /** Web origins whose pages may call this server. Default: none. */
  origins?: readonly string[];
  /** Further names of this server that requests may have in the Host header. */
  hosts?: readonly string[];
  /** Serve the dashboard at `/ui`. Default: true. */
  ui?: boolean;
  /** A folder of definition files (.yaml, .yml, .json) and of modules that export workflows. They are loaded at the start. */
  workflows?: string;
  /**
   * What happens when a definition file has a mistake. With `refuse` (the default) the start fails; with `skip`, the file is reported and
   * left out.
   */
  badWorkflows?: "refuse" | "skip";
  /** Define the sample workflow `ci-1` when nothing else is defined. */
  sample?: boolean;
  /** How long ended runs are kept. Default: a month or half a million runs. */
  retention?: RetentionSettings;
  /** What is logged and where. Default: warnings and worse, as text, to standard error. Tokens never appear. */
  logger?: Partial<Pick<LoggerOptions, "level" | "format" | "write">>;
  /**
   * Where spans of runs, steps and attempts are sent: `await telemetry({ endpoint: "http://localhost:4317", logs: [] })` of
   * `longshore/telemetry`. The server closes it. Default: no spans.
   */
  telemetry?: Pick<Telemetry, "spans" | "close">;
  limits?: Partial<HttpLimits>;
  /** Limits of what all callers together may store. Default: 64 GiB of blobs and 100,000 open runs below one root. */
  quotas?: Partial<Quotas>;
  clock?: Clock;
}

/** The default port. */
export const portDefault = 4_500;
/** The default data folder. */
export const dataDefault = ".longshore";

/** The folder of the data file; null when there is none. */
export function directoryOf(options: ServeOptions): string | null {
  return options.ephemeral || options.store !== undefined ? null : resolve(options.data ?? dataDefault);
}

export function tokensOf(options: ServeOptions): Token[] {
  const given = (options.tokens ?? []).map((text, at) => parseToken(text, `tokens[${at}]`));
  return options.tokenFile === undefined ? given : [...given, ...readTokenFile(options.tokenFile)];
}

/** Throws LONGSHORE_BAD_CONFIG for telemetry without an endpoint: the ids of a server's spans need an exporter of their own. */
export function spansOf({ telemetry }: ServeOptions): SpanWriter | undefined {
  if (telemetry === undefined || telemetry.spans !== undefined) return telemetry?.spans;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", "telemetry exports no spans, expected telemetry() with an endpoint and traces.", {
    detail: { field: "telemetry", expected: "an endpoint" },
  });
}

export function loggerOf(options: ServeOptions, clock: Clock, hidden: readonly string[]): Logger {
  const { level = "warn", format = "text", write = (line: string) => process.stderr.write(`${line}\n`) } = options.logger ?? {};
  return createLogger({ level, format, write, clock, secrets: hidden });
}
