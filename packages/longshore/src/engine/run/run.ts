// What a run is, and the messages that runs and their children leave for each other.

import type { EndState, Fault } from "../board/task.ts";

/** `paused` runs take reports, but start nothing. */
export type RunState = "running" | "paused" | "succeeded" | "failed" | "cancelled" | "timed-out";

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
  /** Nodes that have begun and not settled: when there are none, the run is over. Kept, never counted, as the next three are. */
  readonly active: number;
  /** Nodes that have not settled yet, as far as is known. */
  readonly left: number;
  /** Nodes that failed. */
  readonly failed: number;
  /** Records that it has made. */
  readonly recorded: number;
  /** How often it was tried again after its end, which is the number of its life. */
  readonly retries: number;
  /** When its time last began to count: at its start, a retry, or a resume. */
  readonly countedFrom: number;
  /** Smaller is taken first: added to the priority of its tasks. */
  readonly priority: number;
  /** JSON text of an object: what its steps have set. Null while there is nothing. */
  readonly variables: string | null;
  /** JSON text of what its dialect keeps with it, opaque here. */
  readonly settings: string | null;
  /** JSON text: what happened while it was paused and what decisions left, and steps that are to be skipped when they are reached. */
  readonly backlog: string | null;
  readonly skips: string | null;
  /** The outside ids of a dialect for this run, such as a workflow id on a foreign wire. */
  readonly alias: string | null;
  /** The record in another run that waits for this one, and which attempt of it: a parent that is retried has a child for each. */
  readonly parentTaskId: string | null;
  readonly parentAttempt: number;
  /** The run at the top of those around it; null for one that nothing has started. */
  readonly rootId: string | null;
}

/** A run without its texts, which may have megabytes. */
export type RunHead = Omit<Run, "input" | "output" | "error" | "variables" | "backlog" | "skips">;

/** The progress of a node that waits for several others, or to be wanted: absent until the first of that happens. */
export interface Join {
  readonly runId: string;
  readonly node: number;
  /** Upstreams that it still needs; -1 once the node itself has been started or skipped. */
  readonly left: number;
  /** Upstreams that it has to do without. */
  readonly missed: number;
  /**
   * It is wanted: another node has made it wait, chosen it or demanded it. A node that is not wanted cannot be started by its upstreams.
   */
  readonly begun: boolean;
}

/**
 * One decision touches one run. What it means for another run is left here, in the same transaction, and carried out after it. By then
 * either run may have been restarted, so a message is fenced like a report: it carries the attempt of the parent's step and the life of the
 * child that it is about, and changes nothing once there is a newer one. A file of an earlier version holds messages without some of these;
 * what is absent is not compared.
 */
export type Message =
  /**
   * With `workflow` null, `input` names what to start in the format of `dialect`, for this `attempt` of the parent's step. Without a parent
   * it is a run of its own, `runId` its id.
   */
  | {
      kind: "start-run";
      workflow: string | null;
      dialect: string;
      input: string;
      parentTaskId: string | null;
      attempt?: number;
      runId?: string;
      from: string;
    }
  /** The child `from` has ended in this `life` of it. */
  | {
      kind: "settle-task";
      taskId: string;
      attempt: number;
      from?: string;
      life?: number;
      state: EndState;
      fault: Fault | null;
      output: string | null;
      error: string | null;
    }
  /** A child is alive again, so its parent waits for it again. Carried out in the transaction that brings the child back to life. */
  | { kind: "reopen-task"; taskId: string; attempt: number }
  /** The step has ended without its child, which was in this `life`. */
  | { kind: "cancel-child"; parentTaskId: string; attempt: number; life?: number }
  /** For the run itself: its backlog holds what a decision left. */
  | { kind: "go-on"; runId: string }
  /** For the run itself, which has ended: its open tasks behind the id `after` are to be cancelled. It has no other life before that. */
  | { kind: "end-tasks"; runId: string; endedAt: number; after: string }
  /** For the run itself, which has begun another life `at` this time: what is recorded about these steps is void. */
  | { kind: "forget-tasks"; runId: string; at: number; steps: readonly Step[] };

/** A step by its node, and the last attempt of it in a life of its run. */
export type Step = readonly [node: number, attempt: number];

/** A node whose edges are yet to be followed, from the one with the number `from` on. */
export interface Settled {
  readonly node: number;
  readonly succeeded: boolean;
  /** It chose which nodes go on; its end reaches only joins. */
  readonly chose?: boolean;
  /** It has not ended but given its first part, which reaches those that wait for no more; or has ended after these were reached. */
  readonly part?: "first" | "before";
  readonly from?: number;
}

/**
 * What is left of a decision that would be too large: nodes to start, edges to follow, nodes of a lazy plan that have become wanted, each in
 * order. It is kept in the backlog of its run, and counts as one active node there.
 */
export interface Rest {
  readonly starts: readonly number[];
  readonly settled: readonly Settled[];
  readonly wanted: readonly number[];
}

export interface StoredMessage {
  readonly id: number;
  readonly message: Message;
}

/** What waits in a run to be decided: what decisions left is of the kind `go-on`; the others happened to a `node` while it was paused. */
export interface Waiting {
  readonly kind: string;
  readonly rest?: Rest;
  readonly node?: number;
}

export function backlogOf({ backlog }: Pick<Run, "backlog">): Waiting[] {
  return backlog === null ? [] : (JSON.parse(backlog) as Waiting[]);
}

/** Whether things wait that happened while the run was paused, besides rests of decisions. Found in the text: inside a value it would be escaped. */
export function hasHappenings({ backlog }: Pick<Run, "backlog">): boolean {
  return backlog !== null && /\{"kind":"(?:part|done|closed|ended)"/.test(backlog);
}

/** Adds to a backlog without reading it: thousands of steps may end while their run is paused. */
export function withHappening(backlog: string | null, happening: object): string {
  const text = JSON.stringify(happening);
  return backlog === null ? `[${text}]` : `${backlog.slice(0, -1)},${text}]`;
}

/** `<run id>.<node>`: a step's record is found by its key alone, and the records of a run are stored side by side. */
export function taskIdOf(runId: string, node: number): string {
  return `${runId}.${node}`;
}

export function isRunOpen(state: RunState): boolean {
  return state === "running" || state === "paused";
}

/** The id of the run that a step starts in the format of its dialect: known before the run exists, and one for each attempt. */
export function childIdOf(runId: string, node: number, attempt: number): string {
  return `${runId}-${node}-${attempt}`;
}

/** The id of what is started when a run has failed: known before it exists, and one for each life of the run. */
export function successorIdOf(run: Run): string {
  return `${run.id}-${run.retries}f`;
}
