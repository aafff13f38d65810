// What a run is, and the messages that runs and their children leave for each other.

import type { CodeDefinition } from "../../core/workflow-family.ts";
import type { EndState, Fault } from "../board/task.ts";
import type { ChildDefinition } from "./dialect.ts";

/**
 * A `paused` run accepts reports, but starts nothing. A `blocked` run is a durable function that cannot continue, usually because its code
 * gave other commands than its journal has. What it has started continues, and a retry replays it, usually with other code.
 */
export type RunState = "running" | "paused" | "blocked" | "succeeded" | "failed" | "cancelled" | "timed-out";

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
  /** When a run that was started with a delay begins; null once it has begun. Until then it has no records. */
  readonly startAt: number | null;
  /** The name of the gate that counts it (gate.ts); null for a run without a start limit. */
  readonly gate: string | null;
  /**
   * The run's place among the runs that wait for their turn at the gate; null for a run that does not wait. Until its turn it has no
   * records.
   */
  readonly turn: number | null;
  /**
   * The number of nodes that have started and not settled. When it is 0, the run has ended. This number and the next three are stored, and
   * never counted again.
   */
  readonly active: number;
  /** Nodes that are known not to have settled yet. */
  readonly left: number;
  /** Nodes that failed. */
  readonly failed: number;
  /** Records that the run has created. */
  readonly recorded: number;
  /** How often the run was retried after its end: the number of its life. */
  readonly retries: number;
  /** When its timeout last started: at its start, a retry, or a resume. */
  readonly countedFrom: number;
  /** Added to the priority of its tasks. Tasks with smaller numbers are taken first. */
  readonly priority: number;
  /** JSON text of an object with the variables that its steps have set. Null while there are none. */
  readonly variables: string | null;
  /** JSON text of the dialect's data for this run; opaque here. */
  readonly settings: string | null;
  /**
   * JSON texts. The first has events during a pause and rests of decisions; the second has steps that are skipped when they are reached.
   */
  readonly backlog: string | null;
  readonly skips: string | null;
  /** JSON text of the counts of its signals (signal/signal.ts). Null while there are none. */
  readonly signals: string | null;
  /** The external ids of a dialect for this run, such as a workflow id on a foreign wire. */
  readonly alias: string | null;
  /** The record in another run that waits for this one, and the attempt of that record: each attempt has a child of its own. */
  readonly parentTaskId: string | null;
  readonly parentAttempt: number;
  /** The top run of its family; null for a run that no run has started. */
  readonly rootId: string | null;
}

/** A run without its texts, which may have megabytes. */
export type RunHead = Omit<Run, "input" | "output" | "error" | "variables" | "backlog" | "skips">;

/** The progress of a node that waits for several others, or until another node wants it. Absent until the first event. */
export interface Join {
  readonly runId: string;
  readonly node: number;
  /** Upstreams that it still needs; -1 once the node itself has been started or skipped. */
  readonly left: number;
  /** Upstreams that will never succeed. */
  readonly missed: number;
  /**
   * True when the node is wanted: another node has made it wait, chosen it or demanded it. A node that is not wanted cannot be started by
   * its upstreams.
   */
  readonly begun: boolean;
}

/**
 * One decision changes one run. What it means for another run is a message, stored in the same transaction and carried out later. A message
 * is fenced like a report, because either run may have been restarted by then. It contains the attempt of the parent's step and the life of
 * the child, and changes nothing when there is a newer one. Messages of an earlier version lack some of these fields; absent fields are not
 * compared.
 */
export type Message =
  /**
   * With `workflow` null, `input` names what to start in the format of `dialect`, for this `attempt` of the parent's step. Without a parent
   * it is an independent run with the id `runId`.
   */
  | {
      kind: "start-run";
      workflow: string | null;
      dialect: string;
      input: string;
      parentTaskId: string | null;
      attempt?: number;
      /**
       * The attempt whose child run continues, if it has the same definition and input. When it is `attempt` itself, the step waits for the
       * same child run again. That run is retried if it is still in this `life`.
       */
      resumes?: number;
      life?: number;
      /** With `workflow` null: what to start, instead of what `input` names. */
      definition?: ChildDefinition;
      /** Definitions that are stored first; a definition is left out when its name is in use. */
      defines?: readonly CodeDefinition[];
      runId?: string;
      from: string;
    }
  /** The child `from` has ended in this `life`. */
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
  /** A child run has begun another life, so its parent waits for it again. Carried out in the transaction that restarts the child run. */
  | { kind: "reopen-task"; taskId: string; attempt: number }
  /** The step has ended without its child, which must stop in this `life`. */
  | { kind: "cancel-child"; parentTaskId: string; attempt: number; life?: number }
  /** Runs that wait at this gate may begin. */
  | { kind: "take-turns"; gate: string }
  /** For the run itself: its backlog contains the rest of a decision. */
  | { kind: "go-on"; runId: string }
  /** For the run itself: signals that it keeps may be what some of its records wait for. */
  | { kind: "take-signals"; runId: string }
  /** For the run itself, which has ended: its open tasks behind the id `after` must be cancelled. No other life starts before that. */
  | { kind: "end-tasks"; runId: string; endedAt: number; after: string }
  /** For the run itself, which has started another life `at` this time: the records of these steps are void. */
  | { kind: "forget-tasks"; runId: string; at: number; steps: readonly Step[] };

/** The message that starts a run. */
export type StartRun = Message & { kind: "start-run" };

/** A step's node, and its last attempt in a life of the run. */
export type Step = readonly [node: number, attempt: number];

/** A settled node whose edges from the number `from` on are still to be followed. */
export interface Settled {
  readonly node: number;
  readonly succeeded: boolean;
  /** The node has chosen which nodes continue, so its end reaches only joins. */
  readonly chose?: boolean;
  /**
   * `first`: the node has produced its first part, which reaches those that wait only for it. `before`: it has ended after these were
   * reached.
   */
  readonly part?: "first" | "before";
  readonly from?: number;
}

/**
 * The rest of a decision that would be too large: nodes to start, edges to follow, and nodes of a lazy plan that have become wanted. It is
 * in the backlog of its run, and counts there as one active node.
 */
export interface Rest {
  readonly starts: readonly number[];
  /** Nodes that continue in place: see `NodeStart.resume`. */
  readonly resumed?: readonly number[];
  readonly settled: readonly Settled[];
  readonly wanted: readonly number[];
}

export interface StoredMessage {
  readonly id: number;
  readonly message: Message;
}

/** An undecided event of a run: rests of decisions have the kind `go-on`; the others happened to a `node` during a pause. */
export interface Waiting {
  readonly kind: string;
  readonly rest?: Rest;
  readonly node?: number;
}

export function backlogOf({ backlog }: Pick<Run, "backlog">): Waiting[] {
  return backlog === null ? [] : (JSON.parse(backlog) as Waiting[]);
}

/**
 * Whether the backlog has events from a pause, and not only rests of decisions. Searches the text, which is exact: inside a value the
 * quotes would be escaped.
 */
export function hasHappenings({ backlog }: Pick<Run, "backlog">): boolean {
  return backlog !== null && /\{"kind":"(?:part|done|closed|ended|turn)"/.test(backlog);
}

/** Adds to a backlog without parsing it, because thousands of steps may end while their run is paused. */
export function withHappening(backlog: string | null, happening: object): string {
  const text = JSON.stringify(happening);
  return backlog === null ? `[${text}]` : `${backlog.slice(0, -1)},${text}]`;
}

/** `<run id>.<node>`: a step's record is found by its key alone, and the records of a run are stored side by side. */
export function taskIdOf(runId: string, node: number): string {
  return `${runId}.${node}`;
}

/** The root of the family to which what a run starts belongs. */
export function rootFrom({ id, rootId }: Pick<Run, "id" | "rootId">): string {
  return rootId ?? id;
}

export function isRunOpen(state: RunState): boolean {
  return state === "running" || state === "paused" || state === "blocked";
}

/** False while it waits for its delay or its turn. Then it has no records, and its timeout does not count. */
export function hasBegun({ startAt, turn }: Pick<Run, "startAt" | "turn">): boolean {
  return startAt === null && turn === null;
}

/** The id of the run that a step starts in the format of its dialect. It is known before the run exists, and differs for each attempt. */
export function childIdOf(runId: string, node: number, attempt: number): string {
  return `${runId}-${node}-${attempt}`;
}

/** The id of the successor of a failed run. It is known before the successor exists, and differs for each life of the failed run. */
export function successorIdOf(run: Run): string {
  return `${run.id}-${run.retries}f`;
}
