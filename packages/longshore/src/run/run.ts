// What a run is, and the messages that runs and their children leave for each other.

import type { EndState } from "../board/task.ts";

export type RunState = "running" | "succeeded" | "failed" | "cancelled" | "timed-out";

export interface Run {
  readonly id: string;
  readonly workflow: string;
  readonly definitionId: string;
  readonly state: RunState;
  /** JSON texts. */
  readonly input: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** When the whole run must have ended. */
  readonly endBy: number | null;
  /** Nodes that have not settled yet, and nodes that failed: kept, never counted. */
  readonly left: number;
  readonly failed: number;
  /** How often it was tried again after its end. */
  readonly retries: number;
  /** What outside ids of a dialect this run goes by, such as a workflow id on a foreign wire. */
  readonly alias: string | null;
  /** The record in another run that waits for this one, and which attempt of it: a parent that is retried has a child for each. */
  readonly parentTaskId: string | null;
  readonly parentAttempt: number;
}

/** How far a node with several upstreams has come: absent until the first of them settles. */
export interface Join {
  readonly runId: string;
  readonly node: number;
  /** Upstreams that have not settled; -1 once the node itself has been started or skipped. */
  readonly left: number;
}

/** One decision touches one run. What it means for another run is left here, in the same transaction, and carried out after it. */
export type Message =
  | { kind: "start-run"; workflow: string; input: string; parentTaskId: string }
  | { kind: "settle-task"; taskId: string; attempt: number; state: EndState; output: string | null; error: string | null }
  | { kind: "cancel-child"; parentTaskId: string; attempt: number };

export interface StoredMessage {
  readonly id: number;
  readonly message: Message;
}

/** `<run id>.<node>`: a step's record is found by its key alone, and the records of a run lie side by side. */
export function taskIdOf(runId: string, node: number): string {
  return `${runId}.${node}`;
}

export function isRunOpen(state: RunState): boolean {
  return state === "running";
}
