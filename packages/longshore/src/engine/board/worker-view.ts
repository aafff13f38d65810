// The data of the list of workers: what a request reports, what the list shows, and what is written to disk.

import type { Halt } from "./halts.ts";
import type { Reach } from "./lanes.ts";

export const workerStatuses = ["idle", "busy", "unheard", "offline"] as const;
export type WorkerStatus = (typeof workerStatuses)[number];

/** The part of a worker that survives a restart. */
export interface Registration {
  readonly id: string;
  readonly protocol: string;
  readonly labels: readonly string[];
  readonly registeredAt: number;
  readonly seenAt: number;
}

export interface WorkerHold {
  readonly taskId: string;
  readonly runId: string | null;
  readonly step: string;
  readonly claimedAt: number;
  /** Identifies its lane. */
  readonly lane: string | null;
}

export interface WorkerView extends Registration {
  /** The worker gets no more tasks. */
  readonly cordoned: Halt | undefined;
  /** False for a worker that only claimed; its `registeredAt` is when it was first seen. */
  readonly registered: boolean;
  /** The names of its recent claims, the newest first; null when it has not claimed since the server started. */
  readonly reach: Reach | null;
  /** What the worker does, in the terms of its protocol: handlers, types of tasks, components, roles. */
  readonly does: readonly string[];
  readonly status: WorkerStatus;
  /** How its client describes itself. Null before its first request since the start. */
  readonly agent: string | null;
  readonly slots: number | null;
  readonly version: string | null;
  /** The tasks that it holds now, oldest first. */
  readonly tasks: readonly WorkerHold[];
}

/** What a request of a worker reports besides the time. */
export interface Sign {
  protocol?: string;
  /** The names of a claim. */
  reach?: Reach;
  /** What the worker does, for a worker whose claims do not show it. */
  does?: readonly string[];
  /** How its client describes itself: the header `user-agent`. */
  agent?: string | undefined;
  /** How many tasks it can hold at the same time, and its version, for a protocol that says so. */
  slots?: number;
  version?: string;
  /** The longest expected time until the next request, such as the wait of a long poll. */
  everyMs?: number;
}

/** A worker's place in the order of arrival. */
export interface Arrival {
  readonly id: string;
  readonly registeredAt: number;
}

/** What has to be written. */
export interface Unwritten {
  readonly registrations: readonly Registration[];
  /** Ids of removed workers. */
  readonly forgotten: readonly string[];
}
