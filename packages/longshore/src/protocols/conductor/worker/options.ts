// The options of `conductor(url, options)` for the connection and for the worker as a whole, checked once. Here, options in code take
// precedence over the environment: an address in the code is intentional.

import { type Duration, durationMs } from "../../../core/duration.ts";
import { type Environment, variable } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { processWorkerId } from "../../../core/process-worker-id.ts";
import { readNamedFile } from "../../../core/read-named-file.ts";
import { type Found, flagOf, numberOf, type WorkerOptions } from "./config.ts";

/** The options of `conductor()`. */
export interface ConductorOptions extends WorkerOptions {
  /** Options for single tasks, by name. */
  readonly workers?: { readonly [task: string]: WorkerOptions };
  /** Access key; `CONDUCTOR_AUTH_KEY` and `CONDUCTOR_AUTH_SECRET` by default. */
  readonly keyId?: string;
  readonly keySecret?: string;
  /** Use update-v2 on servers that have it: its response to a result has the next task. True by default. */
  readonly updateV2?: boolean;
  /** How often a running task is looked up, to find out that it was cancelled; 10 s by default, false for never. */
  readonly cancelPoll?: Duration | false;
  /** The folder for results that the server did not accept; `.longshore/outbox` by default, false to keep none. */
  readonly outbox?: string | false;
  /** HTTP/2 where the server offers it (https only); `CONDUCTOR_HTTP2_ENABLED`, `CONDUCTOR_DISABLE_HTTP2`, else true. */
  readonly http2?: boolean;
  /** How long an answer may take; `CONDUCTOR_REQUEST_TIMEOUT_MS`, else 30 s. */
  readonly requestTimeout?: Duration;
  /** `CONDUCTOR_CONNECT_TIMEOUT_MS`, else 10 s. */
  readonly connectTimeout?: Duration;
  /** A token is exchanged for a new one after this long; `CONDUCTOR_REFRESH_TOKEN_INTERVAL` (ms), else 45 min. */
  readonly refreshToken?: Duration;
  /** `CONDUCTOR_TLS_CA_PATH`, `CONDUCTOR_TLS_CERT_PATH`, `CONDUCTOR_TLS_KEY_PATH`, `CONDUCTOR_TLS_INSECURE` by default. */
  readonly tls?: TlsOptions;
  /** `CONDUCTOR_PROXY_URL` by default. */
  readonly proxy?: string;
  /** Where to look for variables; the process's environment by default. */
  readonly env?: Environment;
}

/** Files and settings for TLS to a Conductor server. */
export interface TlsOptions {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /** Trust any certificate. */
  readonly insecure?: boolean;
}

export interface Settings {
  readonly url: URL;
  /** `user:password` of the address, as a header value. */
  readonly basic: string | undefined;
  readonly keys: { readonly id: string; readonly secret: string } | undefined;
  readonly code: WorkerOptions;
  readonly workers: { readonly [task: string]: WorkerOptions };
  readonly workerId: string;
  readonly updateV2: boolean;
  readonly cancelPollMs: number | undefined;
  readonly outboxFolder: string | undefined;
  readonly http2: boolean;
  readonly requestTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly refreshTokenMs: number;
  readonly tls: TlsOptions;
  readonly proxy: string | undefined;
  readonly env: Environment;
}

const urlDefault = "http://localhost:8080/api";
const requestTimeoutMsDefault = 30_000;
const connectTimeoutMsDefault = 10_000;
/** Servers' tokens live an hour or longer; both official SDKs renew at this age. */
const refreshTokenMsDefault = 45 * 60_000;
const cancelPollMsDefault = 10_000;
/** A shorter interval is a mistake of units. */
const cancelPollMsMin = 100;
const outboxDefault = ".longshore/outbox";

export function settingsOf(url: string | URL | undefined, options: ConductorOptions): Settings {
  const env = options.env ?? process.env;
  const address = parseUrl(url ?? variable(env, "CONDUCTOR_SERVER_URL") ?? urlDefault);
  const basic = basicOf(address);
  address.username = "";
  address.password = "";
  return {
    url: address,
    basic,
    keys: keysOf(options, env),
    code: options,
    workers: options.workers ?? {},
    workerId: processWorkerId(),
    updateV2: options.updateV2 ?? true,
    cancelPollMs: cancelPollOf(options.cancelPoll),
    outboxFolder: options.outbox === false ? undefined : (options.outbox ?? outboxDefault),
    http2: options.http2 ?? http2Of(env),
    requestTimeoutMs: msOf(options.requestTimeout, "requestTimeout", env, "CONDUCTOR_REQUEST_TIMEOUT_MS", requestTimeoutMsDefault),
    connectTimeoutMs: msOf(options.connectTimeout, "connectTimeout", env, "CONDUCTOR_CONNECT_TIMEOUT_MS", connectTimeoutMsDefault),
    refreshTokenMs: msOf(options.refreshToken, "refreshToken", env, "CONDUCTOR_REFRESH_TOKEN_INTERVAL", refreshTokenMsDefault),
    tls: options.tls ?? tlsOf(env),
    proxy: options.proxy ?? variable(env, "CONDUCTOR_PROXY_URL"),
    env,
  };
}

function parseUrl(url: string | URL): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (error) {
    throw badConfig(`The server's address is ${JSON.stringify(String(url))}, expected a URL such as "${urlDefault}".`, "url", error);
  }
  if (parsed.protocol === "http:" || parsed.protocol === "https:") return parsed;
  throw badConfig(`The server's address is ${JSON.stringify(String(url))}, expected one that begins with http:// or https://.`, "url");
}

function basicOf({ username, password }: URL): string | undefined {
  if (username === "") return undefined;
  return `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64")}`;
}

function keysOf(options: ConductorOptions, env: Environment): Settings["keys"] {
  const id = options.keyId ?? variable(env, "CONDUCTOR_AUTH_KEY");
  const secret = options.keySecret ?? variable(env, "CONDUCTOR_AUTH_SECRET");
  if (id !== undefined && secret !== undefined) return { id, secret };
  if (id === undefined && secret === undefined) return undefined;
  const missing = id === undefined ? "keyId (or CONDUCTOR_AUTH_KEY)" : "keySecret (or CONDUCTOR_AUTH_SECRET)";
  throw badConfig(`${missing} is missing, expected both halves of the access key or neither.`, id === undefined ? "keyId" : "keySecret");
}

function cancelPollOf(cancelPoll: Duration | false | undefined): number | undefined {
  if (cancelPoll === false) return undefined;
  const ms = durationMs(cancelPoll ?? cancelPollMsDefault, "cancelPoll");
  if (ms >= cancelPollMsMin) return ms;
  throw badConfig(`cancelPoll is ${ms} ms, expected at least ${cancelPollMsMin} ms, or false.`, "cancelPoll");
}

function http2Of(env: Environment): boolean {
  const disabled = found(env, "CONDUCTOR_DISABLE_HTTP2");
  if (disabled !== undefined) return !flagOf(disabled);
  const enabled = found(env, "CONDUCTOR_HTTP2_ENABLED");
  // A value that the Python SDK accepts only for this variable.
  if (enabled?.value.toLowerCase() === "off") return false;
  return enabled === undefined || flagOf(enabled);
}

function msOf(given: Duration | undefined, field: string, env: Environment, name: string, otherwise: number): number {
  const set = found(env, name);
  if (given === undefined && set === undefined) return otherwise;
  const ms = given !== undefined ? durationMs(given, field) : numberOf(set as Found, 1, 2 ** 31 - 1, "milliseconds");
  if (ms >= 1) return ms;
  throw badConfig(`${field} is ${ms} ms, expected at least 1 ms.`, field);
}

function tlsOf(env: Environment): TlsOptions {
  const insecure = found(env, "CONDUCTOR_TLS_INSECURE");
  const file = (name: string) => {
    const value = variable(env, name);
    return value === undefined ? undefined : readPem(name, value);
  };
  const ca = file("CONDUCTOR_TLS_CA_PATH");
  const cert = file("CONDUCTOR_TLS_CERT_PATH");
  const key = file("CONDUCTOR_TLS_KEY_PATH");
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(insecure === undefined ? {} : { insecure: flagOf(insecure) }),
  };
}

function readPem(name: string, value: string): string {
  try {
    return readNamedFile(value).toString();
  } catch (error) {
    throw badConfig(`The environment variable ${name} names ${value}, expected a file that can be read.`, name, error);
  }
}

/** The variable with its name, for the error that refuses it. */
function found(env: Environment, name: string): Found | undefined {
  const value = variable(env, name);
  return value === undefined ? undefined : { name, value };
}

function badConfig(message: string, field: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field } });
}
