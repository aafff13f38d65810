// The SDK's client object, as far as a worker needs it: the server's address and the credentials. Nothing is sent before a worker starts.

import { readFileSync } from "node:fs";
import { variable } from "../../../../core/environment.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";
import type { ConductorOptions, TlsOptions } from "../options.ts";
import type { ConductorLogger } from "./logger.ts";

/** The address of a Conductor server and the key for it. */
export interface OrkesApiConfig {
  serverUrl?: string;
  keyId?: string;
  keySecret?: string;
  /** Milliseconds. */
  refreshTokenInterval?: number;
  requestTimeoutMs?: number;
  connectTimeoutMs?: number;
  tlsCertPath?: string;
  tlsKeyPath?: string;
  tlsCaPath?: string;
  tlsInsecure?: boolean;
  proxyUrl?: string;
  disableHttp2?: boolean;
  logger?: ConductorLogger;
}

/** The client that a TaskHandler accepts: ours, or that of the SDK, which has its address in the same field. */
export interface Client {
  getConfig(): { baseUrl?: string | undefined };
}

/** A client of ours. */
export interface ConductorClient extends Client {
  /** Options of a worker for the connection. */
  readonly config: OrkesApiConfig;
  /** Has no effect, and exists for programs that end the SDK's background refresh. Here tokens are renewed when they are needed. */
  stopBackgroundRefresh(): void;
}

/** As in the SDK, `CONDUCTOR_SERVER_URL`, `CONDUCTOR_AUTH_KEY` and `CONDUCTOR_AUTH_SECRET` take precedence over the code. */
export async function createConductorClient(config: OrkesApiConfig = {}): Promise<ConductorClient> {
  const serverUrl = variable(process.env, "CONDUCTOR_SERVER_URL") ?? config.serverUrl ?? "http://localhost:8080";
  const resolved = { ...config, serverUrl };
  return {
    config: resolved,
    getConfig: () => ({ baseUrl: withoutEndSlashes(serverUrl).replace(/\/api$/, "") }),
    stopBackgroundRefresh: () => {},
  };
}

/** Holds the client, as programs of the SDK expect it: `(await OrkesClients.from(config)).getClient()`. */
export class OrkesClients {
  readonly #client: ConductorClient;

  constructor(client: ConductorClient) {
    this.#client = client;
  }

  static async from(config?: OrkesApiConfig): Promise<OrkesClients> {
    return new OrkesClients(await createConductorClient(config));
  }

  getClient(): ConductorClient {
    return this.#client;
  }
}

export interface Connection {
  readonly url: string | undefined;
  readonly options: ConductorOptions;
}

/** The fields of the client that `conductor()` needs. Plain data, because it may be sent to another process. */
export function connectionOf(client: Client): Connection {
  const config = (client as Partial<ConductorClient>).config ?? {};
  const url = client.getConfig().baseUrl ?? config.serverUrl;
  const keyId = variable(process.env, "CONDUCTOR_AUTH_KEY") ?? config.keyId;
  const keySecret = variable(process.env, "CONDUCTOR_AUTH_SECRET") ?? config.keySecret;
  const tls = tlsOf(config);
  return {
    url,
    options: {
      ...(keyId === undefined ? {} : { keyId }),
      ...(keySecret === undefined ? {} : { keySecret }),
      ...(config.refreshTokenInterval === undefined ? {} : { refreshToken: config.refreshTokenInterval }),
      ...(config.requestTimeoutMs === undefined ? {} : { requestTimeout: config.requestTimeoutMs }),
      ...(config.connectTimeoutMs === undefined ? {} : { connectTimeout: config.connectTimeoutMs }),
      ...(config.proxyUrl === undefined ? {} : { proxy: config.proxyUrl }),
      ...(config.disableHttp2 === undefined ? {} : { http2: !config.disableHttp2 }),
      ...(tls === undefined ? {} : { tls }),
    },
  };
}

function tlsOf({ tlsCaPath, tlsCertPath, tlsKeyPath, tlsInsecure }: OrkesApiConfig): TlsOptions | undefined {
  if (tlsCaPath === undefined && tlsCertPath === undefined && tlsKeyPath === undefined && tlsInsecure === undefined) return undefined;
  const file = (path: string | undefined) => (path === undefined ? undefined : readFileSync(path, "utf8"));
  const [ca, cert, key] = [file(tlsCaPath), file(tlsCertPath), file(tlsKeyPath)];
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(tlsInsecure === undefined ? {} : { insecure: tlsInsecure }),
  };
}
