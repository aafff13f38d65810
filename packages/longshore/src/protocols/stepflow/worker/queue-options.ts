// The common options of workers over gRPC and over NATS, checked once.

import { randomUUID } from "node:crypto";
import { checkedVariable, type Environment, wholeVariable } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { TlsClientOptions } from "../../../net/grpc/connector.ts";
import { parseTarget } from "../../../net/grpc/target.ts";

/** The options that workers over gRPC and NATS share. */
export interface QueueOptions {
  /** The id of this worker for orchestrators. No two workers may have the same. Default: a new UUID. */
  readonly workerId?: string;
  /** The address of the blob service. Default: `STEPFLOW_BLOB_URL`, else the task's orchestrator. */
  readonly blobUrl?: string;
  /** An output field whose JSON has more bytes is stored as a blob; 0 disables that. Default: `STEPFLOW_BLOB_THRESHOLD_BYTES`, else 0. */
  readonly blobThresholdBytes?: number;
  /** Sent to orchestrators as `authorization: Bearer ...`. */
  readonly token?: string;
  /** The trusted CA and the client certificate, for orchestrators with an https:// address. */
  readonly tls?: TlsClientOptions;
  /** Where variables are looked up. Default: this process's environment. */
  readonly env?: Environment;
}

export interface QueueSettings {
  readonly workerId: string;
  readonly blobUrl: string | undefined;
  readonly blobThresholdBytes: number;
  readonly token: string | undefined;
  readonly tls: TlsClientOptions | undefined;
  /** From `STEPFLOW_MAX_CONCURRENT`. */
  readonly slots: number | undefined;
  /** From `STEPFLOW_SHUTDOWN_GRACE_SECS`. */
  readonly drainMs: number | undefined;
}

/** The limit of the runner. */
const slotsMax = 10_000;
/** No supervisor waits longer than an hour. */
const graceSecsMax = 3_600;

export function queueSettings(options: QueueOptions): QueueSettings {
  const env = options.env ?? process.env;
  const graceSecs = wholeVariable(env, "STEPFLOW_SHUTDOWN_GRACE_SECS", 0, graceSecsMax);
  return {
    workerId: named("workerId", options.workerId) ?? randomUUID(),
    blobUrl: addressOption("blobUrl", options.blobUrl, env, "STEPFLOW_BLOB_URL"),
    blobThresholdBytes:
      thresholdOf(options.blobThresholdBytes) ?? wholeVariable(env, "STEPFLOW_BLOB_THRESHOLD_BYTES", 0, Number.MAX_SAFE_INTEGER) ?? 0,
    token: named("token", options.token),
    tls: options.tls,
    slots: wholeVariable(env, "STEPFLOW_MAX_CONCURRENT", 1, slotsMax),
    drainMs: graceSecs === undefined ? undefined : graceSecs * 1_000,
  };
}

/** Refuses an empty text; undefined is allowed. */
export function named(field: string, value: string | undefined): string | undefined {
  if (value === undefined || (typeof value === "string" && value.trim() !== "")) return value;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(value)}, expected a text.`, { detail: { field } });
}

/** `what` names the address in the error. */
function checkAddress(what: string, address: string): string {
  try {
    parseTarget(address);
    return address;
  } catch (error) {
    const expected = "HOST:PORT, http://HOST:PORT or https://HOST:PORT";
    const message = `${what} is ${JSON.stringify(address)}, expected ${expected}.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error, detail: { field: what, expected } });
  }
}

/** The address from the option, else from the variable; undefined when neither is set. */
export function addressOption(what: string, given: string | undefined, env: Environment, variable: string): string | undefined {
  return given === undefined ? checkedVariable(env, variable, (text) => checkAddress(what, text)) : checkAddress(what, given);
}

function thresholdOf(threshold: number | undefined): number | undefined {
  if (threshold === undefined || (Number.isInteger(threshold) && threshold >= 0)) return threshold;
  const message = `blobThresholdBytes is ${JSON.stringify(threshold)}, expected a whole number of bytes, or 0 for none.`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "blobThresholdBytes" } });
}
