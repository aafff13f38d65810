// The worker half of a protocol: what it provides to `longshore work`.

import type { Duration } from "../core/duration.ts";
import type { Environment } from "../core/environment.ts";
import type { Isolate } from "../core/task.ts";
import type { TelemetryVariables } from "../runner/telemetry.ts";
import type { Transport } from "../runner/transport.ts";

/** Plain data, so that it can be sent to another process. */
export interface WorkerSettings {
  /** The name of a worker protocol. Default: the protocol that uses the address of `--on`. */
  readonly protocol?: string;
  readonly on: string;
  readonly token?: string;
  readonly shell?: boolean;
  readonly labels?: readonly string[];
  readonly slots?: number;
  readonly workerId?: string;
  readonly leaseTtl?: Duration;
  readonly heartbeat?: Duration;
  readonly poll?: Duration;
  readonly cancelPoll?: Duration;
  readonly logFlush?: Duration;
  readonly drain?: Duration;
  readonly cwd?: string;
  /** For a worker that the server calls: where it listens, and whether it waits for a handshake. */
  readonly port?: number;
  readonly host?: string;
  readonly handshake?: boolean;
  readonly isolate?: Isolate;
  /** The file to which this worker appends the acknowledgements of the server. */
  readonly record?: string;
}

export interface WorkerProtocol {
  readonly name: string;
  readonly title: string;
  /** True when a worker polls for one task by its name, so that each task is a separate worker. */
  readonly perTask: boolean;
  /** Where its workers run by default: in supervised processes, or in this process when its parent supervises it. */
  readonly isolate: "process" | "thread";
  /** True when standard output belongs to the parent of the worker. */
  readonly ownsOutput: boolean;
  /** True when its workers log in JSON by default. */
  readonly structuredLog: boolean;
  /** The protocol's own variables for traces and logs. They take precedence over those of OpenTelemetry. */
  readonly telemetry?: TelemetryVariables;
  /** True when the server calls a worker at a port: a worker in a separate process needs a fixed port. */
  readonly isCalled: boolean;
  /** Defaults of options that differ from the common defaults. */
  readonly defaults?: { readonly [Option in keyof WorkerSettings]?: string };
  /** Options that would have no effect, each with the reason. Using one of them is a mistake. */
  readonly without: { readonly [Option in keyof WorkerSettings]?: string };
  /** How `longshore work` chooses this protocol. */
  readonly chosen: Chosen;
  /** For the help of `longshore work`: commands with what they do, and sentences. */
  readonly help: { readonly examples: readonly (readonly [command: string, what: string])[]; readonly notes?: string };
  /** Creates the transport for the tasks of one worker. Loads the worker half. */
  transport(settings: WorkerSettings, tasks: readonly string[], print: (text: string) => void): Promise<Transport>;
}

export interface Chosen {
  /** True for the protocol that uses the address of `--on`. There is one. */
  readonly byAddress?: true;
  /** Flags of `longshore work`; the first of them chooses this protocol. `server` returns the address that the worker works for. */
  readonly byFlag?: { readonly flags: readonly [WorkFlag, ...WorkFlag[]]; server(value: unknown, env: Environment): string };
  /** Whether the environment chooses it. Reads variables only. */
  byEnvironment?(env: Environment): FromEnvironment | undefined;
}

export interface WorkFlag {
  /** As the command line shows it, such as `--conductor [url]`. */
  readonly flag: string;
  readonly description: string;
  readonly isPort?: true;
}

export type FromEnvironment =
  /** The address that the worker works for. `weak`: used only when no address was given for `--on`, not even by a variable. */
  | { readonly on: string; readonly weak?: true }
  /** For incomplete variables: the reason, and what to do. Used only when nothing else is chosen. */
  | { readonly refused: string };

/** A value for `without`: protocols whose workers poll have no address to listen at. */
export const notServing = {
  port: "its workers poll for tasks, and are not called",
  host: "its workers poll for tasks, and are not called",
  handshake: "its workers poll for tasks, and are not called",
} as const;
