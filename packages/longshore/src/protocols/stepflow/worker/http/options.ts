// What `stepflowHttp(options)` takes, checked once.

import { randomBytes } from "node:crypto";
import { type Duration, durationMs } from "../../../../core/duration.ts";
import { type Environment, variable, wholeVariable } from "../../../../core/environment.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { withoutEndSlashes } from "../../../../core/text.ts";

/** The options of `stepflowHttp()`. */
export interface StepflowHttpOptions {
  /** Where to listen; any free port by default. */
  readonly port?: number;
  /** 127.0.0.1 by default. The protocol has no authentication: any program that reaches another address can run the components. */
  readonly host?: string;
  /**
   * Whether `{"port": N}` is printed on standard output once it listens, for the orchestrator that started this process; true by default.
   * A function is called with the line instead.
   */
  readonly announce?: boolean | ((line: string) => void);
  /**
   * Whether requests are refused before the runtime has sent `initialize` and `initialized`; true by default. One of several replicas
   * behind a balancer must set false: the runtime initialises only the one it happens to reach.
   */
  readonly handshake?: boolean;
  /** How `/health` calls this worker; `STEPFLOW_SERVICE_NAME`, else `stepflow-worker`. */
  readonly service?: string;
  /** Names this process to balancers; 16 random digits of hex by default. */
  readonly instanceId?: string;
  /** Where blobs are stored, unless the runtime names it: `STEPFLOW_BLOB_API_URL`, such as `http://localhost:7837/api/v1/blobs`. */
  readonly blobApiUrl?: string;
  /** Fields of an output that are larger are kept as blobs: `STEPFLOW_BLOB_THRESHOLD_BYTES`, else the runtime's setting; 0 is never. */
  readonly blobThresholdBytes?: number;
  /** How long a request waits while every slot is taken, before it is refused; 30 s by default. */
  readonly slotWait?: Duration;
  /** The largest body that is read; 64 MiB by default. */
  readonly bodyBytesMax?: number;
  /** Where variables are looked up; this process's environment by default. */
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
/** What one text may hold in Node is about 512 MiB. */
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

/** The address without a slash at its end, or undefined when none is set. */
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
