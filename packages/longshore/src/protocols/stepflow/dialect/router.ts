// Finds the lane of a step's component. This is a port, so that this folder needs neither plugins nor their configuration file. A decision
// may be made twice. So an implementation must depend only on its arguments: path, input and registrations.

import type { Backoff } from "../../../core/backoff.ts";
import type { Json } from "../../../core/json/json.ts";
import type { Lane } from "../../../engine/board/task.ts";
import type { DocumentKey } from "../../../engine/run/documents.ts";
import type { Timeouts } from "../../../engine/run/plan.ts";
import type { TaskErrorCode } from "../wire/messages.ts";

export interface Router {
  /** `component` is the path in the step, such as `/python/udf`; `input` is the evaluated input of the step. */
  route(component: string, input: Json, documents: Documents): Routed | Unrouted | { readonly documents: readonly DocumentKey[] };
}

/**
 * The newest document under a name, or null when there is none. Undefined when it is not loaded: then the router must return its key to
 * request it.
 */
export type Documents = (kind: string, name: string) => Json | undefined;

export interface Routed {
  readonly plugin: string;
  /** The path without its route's prefix, such as `/udf`. */
  readonly remainder: string;
  /** The settings of the route's rule for its plugin, such as `queueName`. */
  readonly params: { readonly [name: string]: Json };
  /** In order of preference: the first lane with a recent poller is used, else the last. */
  readonly lanes: readonly Lane[];
  /** The task's input on that lane: a `ComponentTask` for Stepflow workers, the bare input for workers of other protocols. */
  readonly given: Json;
  /** How often, and after which pause, a step is retried that timed out or could not be reached. */
  readonly transport: { readonly retries: number; readonly backoff: Backoff };
  readonly timeouts?: Timeouts;
  /** Lease duration without a heartbeat. Default: as the claim requests; 0: no limit. */
  readonly holdMs?: number;
}

export interface Unrouted {
  readonly failed: TaskErrorCode;
  readonly message: string;
}

/** The input of a task for a Stepflow worker. The id under which the worker registered the component is looked up at delivery. */
export interface ComponentTask {
  /** The path without its route's prefix. */
  readonly component: string;
  readonly input: Json;
}

/** Only for tasks that this process runs itself. They are handed out again after every restart. */
export const retriesUnlimited = Number.MAX_SAFE_INTEGER;
