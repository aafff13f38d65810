// A parsed Stepflow configuration: its plugins, and the component paths that lead to them. All file formats of Stepflow's releases are
// converted to this form. docs/reference/stepflow-configuration.md lists the keys.

import type { Backoff } from "../../../../core/backoff.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { Route } from "./route.ts";

export interface StepflowConfig {
  /** The file; null for the default configuration. */
  readonly file: string | null;
  /** The working directory of plugin processes, and the base of relative paths. */
  readonly directory: string;
  readonly plugins: ReadonlyMap<string, Plugin>;
  readonly routes: readonly Route[];
  readonly retry: TransportRetry;
  readonly blobApi: BlobApi;
  /** Whether storing a flow also checks its values against the schemas of their receivers. */
  readonly typeCheck: boolean;
}

/**
 * Retries of a step that was lost on its way to the worker or back. The flow itself decides about retries after failures of the component.
 */
export interface TransportRetry {
  readonly max: number;
  readonly backoff: Backoff;
}

export interface BlobApi {
  /** When false, this server stores no blobs and announces no blob API to workers. */
  readonly enabled: boolean;
  /** The address for workers; null for this server's own. */
  readonly url: string | null;
  /** Top-level fields of an input that have more bytes as JSON are sent as references, to workers that support references. */
  readonly threshold: number;
}

export type Plugin = BuiltinPlugin | MockPlugin | HttpPlugin | GrpcPlugin | NatsPlugin | LongshorePlugin;

interface PluginBase {
  readonly name: string;
}

/** How long a step may wait in its queue, and how long it may then run. */
export interface PluginTimeouts {
  readonly queueMs: number;
  /** Null: no limit. */
  readonly executionMs: number | null;
}

/** The built-in components. */
export interface BuiltinPlugin extends PluginBase {
  readonly type: "builtin";
}

/** Components with configured results. */
export interface MockPlugin extends PluginBase {
  readonly type: "mock";
  /** By path, with a leading slash. */
  readonly components: ReadonlyMap<string, MockComponent>;
}

export interface MockComponent {
  readonly inputSchema: Json;
  readonly outputSchema: Json;
  readonly behaviors: readonly { readonly input: Json; readonly answer: MockAnswer }[];
}

export type MockAnswer =
  | { readonly kind: "success"; readonly result: Json }
  | { readonly kind: "failed"; readonly code: string | number; readonly message: string; readonly data: Json | null }
  /** The plugin itself fails, as if it could not be reached. */
  | { readonly kind: "broken"; readonly message: string };

/** A worker that the server calls: JSON-RPC over Streamable HTTP. Exactly one of `launch` and `url` is set. */
export interface HttpPlugin extends PluginBase {
  readonly type: "stepflow";
  readonly launch: Launch | null;
  readonly url: URL | null;
  readonly health: { readonly path: string; readonly timeoutMs: number; readonly retryMs: number };
  /**
   * Maximum of open calls. Calls that wait for a run that they started do not count; otherwise runs could wait for each other without end.
   */
  readonly callsMax: number;
  readonly timeouts: PluginTimeouts;
}

/** Workers that pull over gRPC. */
export interface GrpcPlugin extends PluginBase {
  readonly type: "grpc";
  readonly queue: string;
  readonly launch: Launch | null;
  readonly timeouts: PluginTimeouts;
}

/** Workers that pull from a JetStream stream. A stream is a queue. */
export interface NatsPlugin extends PluginBase {
  readonly type: "nats";
  readonly url: string;
  /** Null when every route sets its own. */
  readonly stream: string | null;
  readonly consumer: string;
  readonly launch: Launch | null;
  readonly timeouts: PluginTimeouts;
}

/** Workers of every other protocol of this server: a component is the task of the same name. */
export interface LongshorePlugin extends PluginBase {
  readonly type: "longshore";
  readonly timeouts: PluginTimeouts;
}

/** A process of a plugin. Variables in its arguments and environment are already replaced. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: { readonly [name: string]: string };
}

/** As in the reference, like the other defaults below unless noted. */
export const queueTimeoutMsDefault = 30_000;
/** 30 days, longer than any caller waits for a queue. */
export const timeoutSecsMax = 30 * 24 * 3_600;
export const consumerDefault = "stepflow-default";
export const healthDefault: HttpPlugin["health"] = { path: "/health", timeoutMs: 60_000, retryMs: 100 };
/** The reference has no limit. Each open call is a connection, and a worker with this many calls is busy. */
export const callsMaxDefault = 100;
/** 1, 1, 2, 3, 5, 8, 10 seconds. */
export const retryDefault: TransportRetry = { max: 3, backoff: { kind: "fibonacci", delayMs: 1_000, maxMs: 10_000 } };
export const blobApiDefault: BlobApi = { enabled: true, url: null, threshold: 1_048_576 };
export const noTimeouts: PluginTimeouts = { queueMs: queueTimeoutMsDefault, executionMs: null };
