// The content of a configuration file, as a type: `export default defineConfig({ ... })` in longshore.config.ts.

import type { Duration } from "../core/duration.ts";
import type { LogLevel } from "../core/logger.ts";
import type { ProtocolSettings } from "../protocols/index.ts";

/** The settings of a configuration file. `longshore config` shows them with their values. */
export interface Config extends ProtocolSettings {
  /** Default: 4500. 0 takes any free port. */
  port?: number;
  /** The address to listen on. Default: 127.0.0.1. */
  host?: string;
  /** The folder of the data file. Default: `.longshore`. Paths begin at the folder of the configuration file. */
  data?: string;
  /** Keep the data in PostgreSQL: `postgres://user@host/database?schema=longshore`. Only for `longshore start`. */
  store?: string;
  /** With `store`: after this time another server may take over the data of a server that hangs. Default: 5s. */
  lease?: Duration;
  /** With `store`: the URL at which the other servers on the same data reach this one. */
  advertise?: string;
  /** Keep all data in memory. */
  ephemeral?: boolean;
  /** Start although the data file is damaged. */
  acceptDamage?: boolean;
  /** A folder of definition files and modules with workflows. */
  workflows?: string;
  /** The tokens of callers, as `SECRET`, `SCOPES:SECRET` or `SCOPES:SECRET:NAME`. A file that others can read should not have them. */
  tokens?: string | readonly string[];
  /** A file with tokens, one per line. */
  tokenFile?: string;
  /** Listen on other addresses than loopback without requiring tokens. */
  insecure?: boolean;
  /** Web origins whose pages may call this server. */
  origin?: string | readonly string[];
  /** Further host names of this server. */
  allowHost?: string | readonly string[];
  /** Whether the dashboard is served at /ui. Default: true. */
  ui?: boolean;
  /** The file of the TLS certificate, PEM. */
  tlsCert?: string;
  /** The file of its key, PEM. */
  tlsKey?: string;
  /** How long runs are kept after their end. Default: 30d. */
  keepFor?: Duration;
  /** The maximum number of ended runs to keep. */
  keepRuns?: number;
  /** How long logs are kept, if shorter. */
  keepLogs?: Duration;
  /** The maximum total size of all blobs, in bytes. */
  blobBytes?: number;
  /** The maximum total size of all documents, in bytes. */
  documentBytes?: number;
  /** The maximum total size of the parts of all tasks, in bytes. */
  partBytes?: number;
  /** The maximum total size of all records of the bus, in bytes. */
  busBytes?: number;
  /** The maximum total size of the logs of all tasks, in bytes. */
  logBytes?: number;
  /** The maximum total size of the attempts of all tasks, in bytes. */
  attemptBytes?: number;
  /** The OpenTelemetry collector for spans of runs, steps and attempts. */
  otlpEndpoint?: string;
  /** The lowest level to log. Default: info, and warn in `longshore dev`. */
  logLevel?: LogLevel;
}

/** Returns its argument: an editor then completes the settings of `longshore.config.ts` and checks their types. */
export function defineConfig(config: Config): Config {
  return config;
}
