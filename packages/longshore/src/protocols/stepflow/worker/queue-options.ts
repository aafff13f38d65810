// The common options of workers over gRPC and over NATS, checked once.

import { randomUUID } from "node:crypto";
import { checkedVariable, type Environment, wholeVariable } from "../../../core/environment.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { TlsClientOptions } from "../../../net/grpc/connector.ts";
import { parseTarget } from "../../../net/grpc/target.ts";

/** The options that workers over gRPC and NATS share. */
export interface QueueOptions {
  /** How orchestrators know this worker; a new UUID by default. No two workers may have the same. */
  readonly workerId?: string;
  /** Where blobs are kept; `STEPFLOW_BLOB_URL`, else the orchestrator that a task came from. */
  readonly blobUrl?: string;
  /** A field of an output whose JSON is larger, in bytes, is kept as a blob; `STEPFLOW_BLOB_THRESHOLD_BYTES`, else 0: none is. */
  readonly blobThresholdBytes?: number;
  /** Sent to orchestrators as `authorization: Bearer ...`. */
  readonly token?: string;
  /** For orchestrators whose address begins with https://: the trusted CA and the client certificate. */
  readonly tls?: TlsClientOptions;
  /** Where to look for variables; the process's environment by default. */
  readonly env?: Environment;
}

export interface QueueSettings {
  readonly workerId: string;
  readonly blobUrl: string | undefined;
  readonly blobThresholdBytes: number;
  readonly token: string | undefined;
  readonly tls: TlsClientOptions | undefined;
  /** Of `STEPFLOW_MAX_CONCURRENT`. */
  readonly slots: number | undefined;
  /** Of `STEPFLOW_SHUTDOWN_GRACE_SECS`. */
  readonly drainMs: number | undefined;
}

/** As many as the runner allows. */
const slotsMax = 10_000;
/** Longer than an hour no supervisor waits. */
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

/** A text that must not be empty where it is set. */
export function named(field: string, value: string | undefined): string | undefined {
  if (value === undefined || (typeof value === "string" && value.trim() !== "")) return value;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(value)}, expected a text.`, { detail: { field } });
}

/** `what` is how the address of a gRPC server is called when it is refused. */
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

/** The address of an option or else a variable, where one is set. */
export function addressOption(what: string, given: string | undefined, env: Environment, variable: string): string | undefined {
  return given === undefined ? checkedVariable(env, variable, (text) => checkAddress(what, text)) : checkAddress(what, given);
}

function thresholdOf(threshold: number | undefined): number | undefined {
  if (threshold === undefined || (Number.isInteger(threshold) && threshold >= 0)) return threshold;
  const message = `blobThresholdBytes is ${JSON.stringify(threshold)}, expected a whole number of bytes, or 0 for none.`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "blobThresholdBytes" } });
}
