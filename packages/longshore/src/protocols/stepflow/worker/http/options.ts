// The options of `stepflowHttp(options)` and their checks.

import { randomBytes } from "node:crypto";
import { type Duration, durationMs } from "../../../../core/duration.ts";
import { type Environment, variable, wholeVariable } from "../../../../core/environment.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";

/** The options of `stepflowHttp()`. */
export interface StepflowHttpOptions {
  /** The port to listen on. Default: any free port. */
  readonly port?: number;
  /** Default: 127.0.0.1. The protocol has no authentication: any program that reaches this address can run the components. */
  readonly host?: string;
  /**
   * Whether to print `{"port": N}` on standard output once the worker listens, for the orchestrator that started this process. A function
   * is called with the line instead. Default: true.
   */
  readonly announce?: boolean | ((line: string) => void);
  /**
   * Whether to refuse requests until the runtime has sent `initialize` and `initialized`. Default: true. Set false for replicas behind a
   * balancer: the runtime initialises only the replica that it happens to reach.
   */
  readonly handshake?: boolean;
  /** The name of this worker in `/health`. Default: `STEPFLOW_SERVICE_NAME`, else `stepflow-worker`. */
  readonly service?: string;
  /** The name of this process for balancers. Default: 16 random hex digits. */
  readonly instanceId?: string;
  /**
   * The address of the blob API, such as `http://localhost:7837/api/v1/blobs`. Default: `STEPFLOW_BLOB_API_URL`, else the address that the
   * runtime sends.
   */
  readonly blobApiUrl?: string;
  /**
   * Larger fields of an output are stored as blobs; 0 disables that. Default: `STEPFLOW_BLOB_THRESHOLD_BYTES`, else the runtime's setting.
   */
  readonly blobThresholdBytes?: number;
  /** How long a request waits for a slot before it is refused. Default: 30 s. */
  readonly slotWait?: Duration;
  /** The largest body that is read. Default: 64 MiB. */
  readonly bodyBytesMax?: number;
  /** Where variables are looked up. Default: this process's environment. */
  readonly env?: Environment;
}

export interface Settings {
  readonly port: number;
  readonly host: string;
  readonly announce: (line: string) => void;
  readonly handshake: boolean;
  readonly service: string;
  readonly instanceId: string;
  readonly blobApiUrl: string | undefined;
  readonly blobThresholdBytes: number | undefined;
  readonly slotWaitMs: number;
  readonly bodyBytesMax: number;
}

const portMax = 65_535;
const bodyBytesDefault = 64 * 1024 * 1024;
/** A string in Node holds about 512 MiB. */
const bodyBytesMost = 256 * 1024 * 1024;
const serviceDefault = "stepflow-worker";

export function settingsOf(options: StepflowHttpOptions): Settings {
  const env = options.env ?? process.env;
  return {
    port: whole(options.port ?? 0, "port", 0, portMax),
    host: options.host ?? "127.0.0.1",
    announce: announcer(options.announce ?? true),
    handshake: options.handshake ?? true,
    service: options.service ?? variable(env, "STEPFLOW_SERVICE_NAME") ?? serviceDefault,
    instanceId: headerValue(options.instanceId ?? randomBytes(8).toString("hex"), "instanceId"),
    blobApiUrl: blobUrl(options.blobApiUrl ?? variable(env, "STEPFLOW_BLOB_API_URL")),
    blobThresholdBytes: threshold(options.blobThresholdBytes, env),
    slotWaitMs: durationMs(options.slotWait ?? 30_000, "slotWait"),
    bodyBytesMax: whole(options.bodyBytesMax ?? bodyBytesDefault, "bodyBytesMax", 1_024, bodyBytesMost),
  };
}

function announcer(given: boolean | ((line: string) => void)): (line: string) => void {
  if (typeof given === "function") return given;
  return given ? (line) => void process.stdout.write(line) : () => {};
}

/** The address without a trailing slash, or undefined when none is set. */
function blobUrl(url: string | undefined): string | undefined {
  if (url === undefined || url === "") return undefined;
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return withoutEndSlashes(url);
  throw badConfig(`blobApiUrl is ${JSON.stringify(url)}, expected a URL such as "http://localhost:7837/api/v1/blobs".`, "blobApiUrl");
}

function threshold(given: number | undefined, env: Environment): number | undefined {
  if (given !== undefined) return whole(given, "blobThresholdBytes", 0, Number.MAX_SAFE_INTEGER);
  return wholeVariable(env, "STEPFLOW_BLOB_THRESHOLD_BYTES", 0, Number.MAX_SAFE_INTEGER);
}

function headerValue(text: string, field: string): string {
  if (/^[\w.~:-]{1,200}$/.test(text)) return text;
  throw badConfig(`${field} is ${JSON.stringify(text)}, expected up to 200 letters, digits and . _ ~ : -`, field);
}

function whole(value: number, field: string, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw badConfig(`${field} is ${value}, expected a whole number from ${min} to ${max}.`, field);
}

function badConfig(message: string, field: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field } });
}
