// The internal graph that every dialect compiles to. A plan belongs to a definition, is never changed, and is shared by all its runs.

import type { Backoff } from "../../core/backoff.ts";
import type { DebounceSource } from "../../core/debounce.ts";
import type { EventTrigger } from "../../core/event-trigger.ts";
import type { Json } from "../../core/json/json.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { CheckedLimit } from "../../core/start-limit.ts";
import type { LimitKey } from "../board/limits.ts";
import type { Lane } from "../board/task.ts";

/** A value that is evaluated when a step starts. Only the dialect that created it can evaluate it. */
export type Template = unknown;

export interface RetryPolicy {
  /** How many failed attempts may be followed by another attempt. */
  failures: number;
  /**
   * How many lost holds (a worker that vanished) may be followed by another attempt. A separate budget: a crash of the worker is not the
   * task's fault. With `as-failure` a lost hold counts as a failure, with the same backoff.
   */
  lost: number | "as-failure";
  backoff: Backoff;
  /** Backoff after a lost hold. Default: none. */
  lostBackoff?: Backoff;
  /** A timeout counts as a lost hold, with the same backoff. */
  timeoutSpends?: "lost";
  /**
   * Retry, as after a failure, when no worker took the task in time. Default: the task fails, because waiting longer would change nothing.
   */
  retryUnclaimed?: boolean;
  /** No further attempt starts after this time since the first queueing. */
  withinMs?: number;
  /** A timeout ends the run at once, without another attempt. A lost hold is not a timeout. */
  timeoutEndsRun?: boolean;
}

export interface Timeouts {
  /** From queueing until a worker must have taken it. */
  claimMs?: number;
  /** From the attempt's first claim until it must have ended. */
  endMs?: number;
  /** From the first queueing until the task must have ended, retries included. */
  totalMs?: number;
}

/**
 * What follows when a step ends without a result. `skip`: steps that wait for its result are skipped, and the run fails when all steps have
 * settled. `end`: the run ends now. `tolerate`: the run continues as if the step had succeeded. `permit`: the same, but the run fails at
 * its end.
 */
export type OnFailure = "skip" | "end" | "tolerate" | "permit";

interface NodeBase {
  /** The step's id, unique in the plan. */
  readonly id: string;
  readonly input: Template;
  /** When it resolves to false the step is skipped; absent means always. */
  readonly when?: Template;
  /** Indexes of the nodes that must settle first, each once. */
  readonly after: readonly number[];
  /**
   * `done`: all of them must have succeeded, else this step is skipped. `settled`: they may end in any way. `any`: the first of them starts
   * it, because only one of them ever ends.
   */
  readonly waitsFor: "done" | "settled" | "any";
  /** The nodes of `after` whose first part is enough. A node that ends without a part counts by its end, like the others. */
  readonly onFirstPart?: readonly number[];
  /**
   * This many nodes of `after` are enough; the others are ignored. Default: all of them. A node that waits for results is skipped as soon
   * as too many of them have failed. Not used with `any`.
   */
  readonly threshold?: number;
  readonly timeouts: Timeouts;
  /** The node is started by another node that names it, never at the start of the run. */
  readonly demanded?: boolean;
  /**
   * In a lazy plan: the nodes that this node requires. They become wanted when this node becomes wanted. The nodes that it waits for are
   * also in `after`.
   */
  readonly demands?: readonly number[];
  /** Default: `skip`. */
  readonly onFailure?: OnFailure;
  /** Default: no retries. */
  readonly retry?: RetryPolicy;
  /** The input is evaluated again for each attempt, because it may read values that have changed. */
  readonly freshInput?: boolean;
  /**
   * Nodes that an order to skip this node also skips: the join that it starts, the node that starts it, or the node that chooses by its
   * result.
   */
  readonly skipsWith?: readonly number[];
  /** The dialect added this node; it is not shown to people. */
  readonly hidden?: boolean;
  /** The node's record takes no place among the records of the run: other nodes are numbered without it. */
  readonly placeless?: boolean;
  /** What the dialect made it from. Only the dialect reads it. */
  readonly origin?: unknown;
}

/** How a task is placed on the board. */
export interface Placement {
  /** In order of preference; the first with a recent poller is taken, else the last. */
  readonly lanes: readonly Lane[];
  /** Smaller is taken first. */
  readonly priority: number;
  readonly retry: RetryPolicy;
  readonly limits: readonly LimitKey[];
  /** Default: the node's own timeouts. */
  readonly timeouts?: Timeouts;
  /** A lane is preferred over the last one when its last poll is this recent. Default: a minute. */
  readonly polledMs?: number;
  /** Delay before the task can be claimed. */
  readonly delayMs?: number;
  /** Maximum term of a hold without a heartbeat. Default: as the claim requests; 0: without a limit. */
  readonly holdMs?: number;
}

/** Work for a worker. */
export interface TaskNode extends Omit<NodeBase, "retry">, Omit<Placement, "timeouts"> {
  readonly kind: "task";
  /** The dialect decides for each run how the task is placed (`Dialect.place`). */
  readonly placed?: boolean;
}

/** A run of another definition; its output is the step's. */
export interface RunNode extends NodeBase {
  readonly kind: "run";
  /** The name of the definition. Null when the input names what to start, in the format of the dialect. */
  readonly workflow: string | null;
  /**
   * A retry of the run also retries the child run of the attempt that did not succeed; the child keeps the results of its steps. With
   * another definition or input, a new run is started instead. Default: always a new run.
   */
  readonly resumes?: boolean;
}

/**
 * A node that ends as soon as it starts: only its output is evaluated. It may change the run's variables, and may choose which of the nodes
 * that it names are started.
 */
export interface InstantNode extends NodeBase {
  readonly kind: "instant";
  readonly output: Template;
  /** An object that is merged into the run's variables. */
  readonly variables?: Template;
  /**
   * Resolves to a `Grown` when the plan is too short for what follows this node, else to null. The run continues with the longer definition,
   * and then this node starts.
   */
  readonly grows?: Template;
  /** Nodes that start together with this one, in order. Joins among them start to wait. */
  readonly starts?: readonly number[];
  /**
   * Selects one of `cases` by the text that `by` resolves to, else `otherwise`. A case without nodes continues with the node's own
   * dependents.
   */
  readonly choice?: {
    readonly by: Template;
    readonly cases: ReadonlyMap<string, readonly number[]>;
    readonly otherwise: readonly number[];
  };
}

/**
 * A longer definition of the same run, in the dialect of the run. Its plan begins with the nodes of the plan before, which have the same
 * places and the same ids; only what follows them may differ.
 */
export interface Grown {
  /** Hexadecimal. Equal sources have the same hash. */
  readonly hash: string;
  readonly source: string;
  /** True when the source contains data of the run. Such a definition is removed with the run; the others are shared by all runs. */
  readonly own: boolean;
}

/** Once started, waits until every node in `after` has settled; then its output is evaluated. */
export interface JoinNode extends NodeBase {
  readonly kind: "join";
  readonly output: Template;
}

/** Waits for a report, for a signal, or until a time. */
export interface WaitNode extends NodeBase {
  readonly kind: "wait";
  /** Resolves to the name of the signal that ends it. Default: the id of the step. */
  readonly signal?: Template;
  /** The JSON Schema of the value of that signal. A value that does not fit is dropped, and the step waits for another one. */
  readonly schema?: JsonSchema | undefined;
  /** Resolves to milliseconds since 1970, or null to wait for a report only. */
  readonly until: Template;
}

/** Ends the run at once. */
export interface EndNode extends NodeBase {
  readonly kind: "end";
  /** Resolves to an `Ending`. */
  readonly ending: Template;
}

/** What the `ending` of an EndNode resolves to. */
export interface Ending {
  state: "succeeded" | "failed" | "cancelled";
  error: string | null;
  output: Json;
}

export type PlanNode = TaskNode | RunNode | InstantNode | JoinNode | WaitNode | EndNode;

export interface Plan {
  readonly dialect: string;
  readonly nodes: readonly PlanNode[];
  /** Node index by step id. */
  readonly index: ReadonlyMap<string, number>;
  /** For each node the nodes that wait for it, in definition order. */
  readonly dependents: readonly (readonly number[])[];
  /** For each node whose first part starts others: those of its dependents that wait for the first part. */
  readonly onFirstPart: ReadonlyMap<number, ReadonlySet<number>>;
  /** For each node that other nodes start or choose: those other nodes, without the ones that are in its `after`. */
  readonly starters: ReadonlyMap<number, readonly number[]>;
  readonly output: Template;
  /**
   * Not all nodes run: a `demanded` node starts when its upstreams have settled and another node has chosen or demanded it. Until then it
   * costs only its counter.
   */
  readonly lazy: boolean;
  readonly timeoutMs: number | null;
  /** The output is evaluated however the run ends, not only when it succeeds. */
  readonly outputAlways: boolean;
  /** The run succeeds when its output can be evaluated, whatever the results of its steps, and fails when it cannot. */
  readonly judgedByOutput: boolean;
  /** When this run fails, times out or ends itself as cancelled, another run is started; the dialect decides which one. */
  readonly successor: boolean;
  /** A step that is retried along with its run keeps its count of failures, instead of a new budget. */
  readonly keepsCounting: boolean;
  /** When a child run begins another life, its parent waits for it again. The parent may have ended. */
  readonly reopensParent: boolean;
  /**
   * Workers may report on steps that wait for a time, a signal or a child run. In other plans such a step ends only by what it waits for: who may
   * send signals is decided by the operator.
   */
  readonly waitsTakeReports: boolean;
  /**
   * The only node is the driver: a task whose worker decides, turn by turn, which commands follow. Each command becomes a node of that run
   * (driver.ts).
   */
  readonly driven: boolean;
  /** The JSON Schema of the input: a start with an input that does not fit is refused. */
  readonly inputSchema?: JsonSchema | undefined;
  /** The JSON Schema of the input as far as the author has given it, for forms. Starts are not checked against it. Default: `inputSchema`. */
  readonly inputForm?: JsonSchema | undefined;
  /** The events that start a run. */
  readonly events?: readonly EventTrigger[] | undefined;
  /** How starts that come close together become one run. */
  readonly debounce?: DebounceSource | undefined;
  /** How many runs may be open at once. */
  readonly limit?: CheckedLimit | undefined;
  /** What the dialect made it from. Only the dialect reads it. */
  readonly origin?: unknown;
}

/**
 * Maximum number of steps in one definition. A run of this size still has a constant cost per step, and only a faulty program generates a
 * larger definition.
 */
export const nodesMax = 20_000;

/** A source up to this length is compiled at once: some milliseconds in every dialect. */
export const atOnceCharsMax = 32_768;

/** How many of its upstreams must settle before a node starts. */
export function requiredOf({ after, threshold = after.length }: Pick<PlanNode, "after" | "threshold">): number {
  return threshold;
}

/**
 * Whether the node has a counter in each run. A node that waits for a single other node needs none, because it starts when that node ends.
 * The exception is a node that starts a child run: a restarted child run may run before the other node has ended.
 */
export function countsAlways({ after, kind }: Pick<PlanNode, "after" | "kind">): boolean {
  return after.length > 1 || kind === "join" || (kind === "run" && after.length > 0);
}

/** The nodes that a node starts, or may choose. */
export function namedBy(node: PlanNode): number[] {
  if (node.kind !== "instant") return [];
  return [...(node.starts ?? []), ...[...(node.choice?.cases.values() ?? [])].flat(), ...(node.choice?.otherwise ?? [])];
}
