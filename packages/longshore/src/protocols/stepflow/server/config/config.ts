// A Stepflow configuration once it has been read: its plugins, and the component paths that lead to them. Every form
// that releases of Stepflow have written it in ends here. docs/reference/stepflow-configuration.md has the keys.

import type { Backoff } from "../../../../core/backoff.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { Route } from "./route.ts";

export interface StepflowConfig {
  /** Where it was read; null for the one that needs no file. */
  readonly file: string | null;
  /** Where the processes of plugins run, and what relative paths are relative to. */
  readonly directory: string;
  readonly plugins: ReadonlyMap<string, Plugin>;
  readonly routes: readonly Route[];
  readonly retry: TransportRetry;
  readonly blobApi: BlobApi;
  /** Whether values of a flow are held against the schemas of what takes them, when it is stored. */
  readonly typeCheck: boolean;
}

/** How often a step is tried again that got lost on the way to its worker or back; a failure of the component itself is the flow's matter. */
export interface TransportRetry {
  readonly max: number;
  readonly backoff: Backoff;
}

export interface BlobApi {
  /** False: this server keeps no blobs, and announces none to workers. */
  readonly enabled: boolean;
  /** The address for workers; null for this server's own. */
  readonly url: string | null;
  /** Top-level fields of an input above this many bytes of JSON travel as references, to workers that understand them. */
  readonly threshold: number;
}

export type Plugin = BuiltinPlugin | MockPlugin | HttpPlugin | GrpcPlugin | NatsPlugin | LongshorePlugin;

interface PluginBase {
  readonly name: string;
}

/** How long a step may wait to be begun, and how long it may take from then on. */
export interface PluginTimeouts {
  readonly queueMs: number;
  /** Null for as long as it takes. */
  readonly executionMs: number | null;
}

/** The components that the server brings itself. */
export interface BuiltinPlugin extends PluginBase {
  readonly type: "builtin";
}

/** Components with configured results. */
export interface MockPlugin extends PluginBase {
  readonly type: "mock";
  /** By path, each with a slash in front. */
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

/** A worker that is called: JSON-RPC over Streamable HTTP. Exactly one of `launch` and `url` is there. */
export interface HttpPlugin extends PluginBase {
  readonly type: "stepflow";
  readonly launch: Launch | null;
  readonly url: URL | null;
  readonly health: { readonly path: string; readonly timeoutMs: number; readonly retryMs: number };
  /** How many calls are open at once. Those that wait for a run they started do not count, or runs could wait for each other forever. */
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

/** Workers of every other protocol that this server speaks: a component is the task of the same name. */
export interface LongshorePlugin extends PluginBase {
  readonly type: "longshore";
  readonly timeouts: PluginTimeouts;
}

/** A process of a plugin. Its arguments and environment have had their variables replaced. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: { readonly [name: string]: string };
}

/** Of the reference, as are the other defaults below unless noted. */
export const queueTimeoutMsDefault = 30_000;
/** A person who lists a queue with more than this is not waiting for it. */
export const timeoutSecsMax = 30 * 24 * 3_600;
export const consumerDefault = "stepflow-default";
export const healthDefault: HttpPlugin["health"] = { path: "/health", timeoutMs: 60_000, retryMs: 100 };
/** The reference has no limit. Each open call is a connection, and a worker with this many calls at once is busy by any measure. */
export const callsMaxDefault = 100;
/** 1, 1, 2, 3, 5, 8, 10 seconds. */
export const retryDefault: TransportRetry = { max: 3, backoff: { kind: "fibonacci", delayMs: 1_000, maxMs: 10_000 } };
export const blobApiDefault: BlobApi = { enabled: true, url: null, threshold: 1_048_576 };
export const noTimeouts: PluginTimeouts = { queueMs: queueTimeoutMsDefault, executionMs: null };
