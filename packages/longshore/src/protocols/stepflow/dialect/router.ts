// The lane of a step's component: a port, so that this folder needs neither plugins nor the file that configures them. An implementation
// must use its arguments alone: the same path, input and registrations must lead to the same place, because a decision may be made twice.

import type { Backoff } from "../../../core/backoff.ts";
import type { Json } from "../../../core/json/json.ts";
import type { Lane } from "../../../engine/board/task.ts";
import type { DocumentKey } from "../../../engine/run/documents.ts";
import type { Timeouts } from "../../../engine/run/plan.ts";
import type { TaskErrorCode } from "../wire/messages.ts";

export interface Router {
  /** `component` is the path as the step has it, such as `/python/udf`; `input` what the step was worked out to be given. */
  route(component: string, input: Json, documents: Documents): Routed | Unrouted | { readonly documents: readonly DocumentKey[] };
}

/** The newest document under a name: null when there is none, undefined when it has to be requested by returning its key. */
export type Documents = (kind: string, name: string) => Json | undefined;

export interface Routed {
  readonly plugin: string;
  /** The path without its route's prefix, such as `/udf`. */
  readonly remainder: string;
  /** The settings of the route's rule for its plugin, such as `queueName`. */
  readonly params: { readonly [name: string]: Json };
  /** In order of preference: the first with a recent poller, else the last. */
  readonly lanes: readonly Lane[];
  /** What the task on that lane is given: a `ComponentTask` for Stepflow's own workers, the bare input for workers of other protocols. */
  readonly given: Json;
  /** How often, and after how long, a step is tried again that timed out or could not be reached. */
  readonly transport: { readonly retries: number; readonly backoff: Backoff };
  readonly timeouts?: Timeouts;
  /** How long a hold lasts at most without a heartbeat. Absent: as the claim requests; 0: forever. */
  readonly holdMs?: number;
}

export interface Unrouted {
  readonly failed: TaskErrorCode;
  readonly message: string;
}

/** What a task is given whose worker speaks Stepflow. The id that the worker registered the component under is found at delivery. */
export interface ComponentTask {
  /** The path without its route's prefix. */
  readonly component: string;
  readonly input: Json;
}

/** For in-process tasks that are simply handed out again after a restart: as often as it takes. */
export const retriesUnlimited = Number.MAX_SAFE_INTEGER;
