// The options of `workflowGraph(url, options)`, and their checks.

import { type Duration, durationMs } from "../../../core/duration.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { processWorkerId } from "../../../core/process-worker-id.ts";
import { leaseTtlSecsDefault, leaseTtlSecsMax, leaseTtlSecsMin } from "../wire/shapes.ts";

/** The options of `workflowGraph()`. */
export interface WorkflowGraphOptions {
  /** The labels of this worker: it gets only jobs whose required labels are all among them. Each handler adds `handler:name`. */
  readonly labels?: readonly string[];
  /** Sent as `Authorization: Bearer ...`. */
  readonly token?: string;
  /** Host name, process id and a random part by default. */
  readonly workerId?: string;
  /** Lease duration without a heartbeat, in whole seconds; 30 s by default. */
  readonly leaseTtl?: Duration;
  /** Pause between empty claims on servers without long polls; 2 s by default. */
  readonly poll?: Duration;
  /** Pause between lease heartbeats; a third of `leaseTtl` by default, and never above 10 s. */
  readonly heartbeat?: Duration;
  /** Pause between checks for a cancel; 2 s by default. */
  readonly cancelPoll?: Duration;
  /** Maximum delay before log lines are sent as a batch; 500 ms by default. */
  readonly logFlush?: Duration;
  /** Pause between the worker's own heartbeats; 10 s by default. With them the worker notices when the server does not know it any more. */
  readonly workerHeartbeat?: Duration;
  /** Run commands that name no handler with `sh -c`. Off by default: anyone who can queue a job could run anything here. */
  readonly shell?: boolean;
  /** Added to this process's environment for shell commands. */
  readonly env?: { readonly [name: string]: string };
  /** Where shell commands run; this process's directory by default. */
  readonly cwd?: string;
}

export interface Settings {
  readonly url: URL;
  readonly labels: readonly string[];
  readonly token: string | undefined;
  readonly workerId: string;
  readonly leaseTtlSecs: number;
  readonly pollMs: number;
  readonly heartbeatMs: number;
  readonly cancelPollMs: number;
  readonly logFlushMs: number;
  readonly workerHeartbeatMs: number;
  readonly shell: boolean;
  readonly env: { readonly [name: string]: string };
  readonly cwd: string | undefined;
}

/** The reference always renews a lease to 30 s. So with any server, heartbeats must come much more often. */
const heartbeatMsMax = 10_000;
/** Minimum pauses. Shorter ones have a wrong unit. */
const pauseMsMin = 10;

export function settingsOf(url: string | URL, options: WorkflowGraphOptions): Settings {
  const leaseTtlSecs = leaseSecs(options.leaseTtl ?? leaseTtlSecsDefault * 1_000);
  return {
    url: parseUrl(url),
    labels: [...(options.labels ?? [])],
    token: options.token,
    workerId: options.workerId ?? processWorkerId(),
    leaseTtlSecs,
    pollMs: pauseMs(options.poll ?? 2_000, "poll"),
    heartbeatMs: heartbeatOf(options.heartbeat, leaseTtlSecs),
    cancelPollMs: pauseMs(options.cancelPoll ?? 2_000, "cancelPoll"),
    logFlushMs: pauseMs(options.logFlush ?? 500, "logFlush"),
    workerHeartbeatMs: pauseMs(options.workerHeartbeat ?? 10_000, "workerHeartbeat"),
    shell: options.shell ?? false,
    env: options.env ?? {},
    cwd: options.cwd,
  };
}

function parseUrl(url: string | URL): URL {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (error) {
    throw badConfig(
      `The server's address is ${JSON.stringify(String(url))}, expected a URL such as "http://localhost:4500".`,
      "url",
      error,
    );
  }
  if (parsed.protocol === "http:" || parsed.protocol === "https:") return parsed;
  throw badConfig(`The server's address is ${parsed.href}, expected http:// or https://.`, "url");
}

function leaseSecs(ttl: Duration): number {
  const secs = durationMs(ttl, "leaseTtl") / 1_000;
  if (Number.isInteger(secs) && secs >= leaseTtlSecsMin && secs <= leaseTtlSecsMax) return secs;
  throw badConfig(`leaseTtl is ${secs} s, expected whole seconds from ${leaseTtlSecsMin} to ${leaseTtlSecsMax}.`, "leaseTtl");
}

function heartbeatOf(heartbeat: Duration | undefined, leaseTtlSecs: number): number {
  if (heartbeat === undefined) return Math.min((leaseTtlSecs * 1_000) / 3, heartbeatMsMax);
  const ms = pauseMs(heartbeat, "heartbeat");
  if (ms >= leaseTtlSecs * 1_000) throw badConfig(`heartbeat is ${ms} ms, expected less than leaseTtl (${leaseTtlSecs} s).`, "heartbeat");
  if (ms > heartbeatMsMax)
    throw badConfig(`heartbeat is ${ms} ms, expected at most ${heartbeatMsMax} ms: some servers renew a lease to 30 s only.`, "heartbeat");
  return ms;
}

function pauseMs(value: Duration, field: string): number {
  const ms = durationMs(value, field);
  if (ms >= pauseMsMin) return ms;
  throw badConfig(`${field} is ${ms} ms, expected at least ${pauseMsMin} ms.`, field);
}

function badConfig(message: string, field: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause, detail: { field } });
}
