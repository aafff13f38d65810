// The one internal graph that every dialect compiles to. A plan is made once per definition, never changed, and shared by all its runs.

import type { Backoff } from "../../core/backoff.ts";
import type { Json } from "../../core/json/json.ts";
import { atOnce, eachInSlices, mapInSlices, type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
import type { LimitKey } from "../board/limits.ts";
import type { Lane } from "../board/task.ts";

/** A value to be worked out when a step starts. Opaque here: only the dialect that made it can resolve it. */
export type Template = unknown;

export interface RetryPolicy {
  /** How many failed attempts may be followed by another. */
  failures: number;
  /**
   * How many lost holds (a worker that vanished) may be. A budget of its own: a crash of the worker is not the task's fault. With
   * `as-failure` a lost hold spends the budget of failures and waits as they do.
   */
  lost: number | "as-failure";
  backoff: Backoff;
  /** How long to wait after a lost hold; at once when absent. */
  lostBackoff?: Backoff;
  /** A timeout spends the budget of lost holds, and waits as they do: a worker that took too long counts as lost. */
  timeoutSpends?: "lost";
  /** No worker took it in time: try again like after a failure. Otherwise that is the end, because waiting longer would change nothing. */
  retryUnclaimed?: boolean;
  /** After this long since the first queueing no further attempt is begun. */
  withinMs?: number;
  /** A timeout ends the run at once, without another attempt. The silence of a holder is no timeout. */
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
 * What follows when a step ends without a result. `skip`: what waits for its result is skipped, and the run fails when all has settled.
 * `end`: the run ends now. `tolerate`: as if it had succeeded. `permit`: the same, but the run fails in the end.
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
   * `done`: every one of them must have succeeded, else this step is skipped. `settled`: any ending will do. `any`: the first of them
   * starts it, because only one of them ever comes.
   */
  readonly waitsFor: "done" | "settled" | "any";
  /** Of those in `after`, the ones whose first part is enough. One that ends without a part counts by its end, as the others do. */
  readonly onFirstPart?: readonly number[];
  /**
   * So many of `after` are enough, and whatever comes of the others is ignored; all when absent. A node that waits for results is
   * skipped as soon as too many have failed for that. Means nothing with `any`.
   */
  readonly threshold?: number;
  readonly timeouts: Timeouts;
  /** Started by the node that names it, never by the beginning of the run. */
  readonly demanded?: boolean;
  /** In a lazy plan: what this node cannot do without, and is wanted as soon as it is. What it waits for is in `after` all the same. */
  readonly demands?: readonly number[];
  /** `skip` when absent. */
  readonly onFailure?: OnFailure;
  /** None when absent: the first failure is the last. */
  readonly retry?: RetryPolicy;
  /** The input is worked out again for each attempt, because it may read what has changed since. */
  readonly freshInput?: boolean;
  /** It was not written by an author, and is not shown to people. */
  readonly hidden?: boolean;
  /** What the dialect made it from; opaque here. */
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
  /** The node's own when absent. */
  readonly timeouts?: Timeouts;
  /** How recent a poll of a lane has to be for it to be taken before the last; a minute when absent. */
  readonly polledMs?: number;
  /** How long it is invisible at first. */
  readonly delayMs?: number;
  /** How long a hold lasts at most without a heartbeat, whatever the claim requests. Absent: as the claim requests; 0: forever. */
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
}

/**
 * Something that is over as soon as it begins: its output is worked out, and that is all. It may change the run's variables, and may
 * choose which of the nodes that it names are started.
 */
export interface InstantNode extends NodeBase {
  readonly kind: "instant";
  readonly output: Template;
  /** An object that is laid over the run's variables. */
  readonly variables?: Template;
  /** Nodes that begin with this one, in order. Joins among them begin to wait. */
  readonly starts?: readonly number[];
  /**
   * One of `cases`, by the text that `by` resolves to, else `otherwise`. A case that starts nothing continues with the node's own
   * dependents.
   */
  readonly choice?: {
    readonly by: Template;
    readonly cases: ReadonlyMap<string, readonly number[]>;
    readonly otherwise: readonly number[];
  };
}

/** Waits, once begun, until every node in `after` has settled; then its output is worked out. */
export interface JoinNode extends NodeBase {
  readonly kind: "join";
  readonly output: Template;
}

/** Waits for a report, or until a time. */
export interface WaitNode extends NodeBase {
  readonly kind: "wait";
  /** Resolves to milliseconds since 1970, or null to wait for a report only. */
  readonly until: Template;
}

/** Ends the run at once. */
export interface EndNode extends NodeBase {
  readonly kind: "end";
  /** Resolves to what becomes of the run. */
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
  /** For each node whose first part others wait for, which of its dependents do. */
  readonly onFirstPart: ReadonlyMap<number, ReadonlySet<number>>;
  /** For nodes that others name, by starting or choosing them, who does; those that wait for them anyway are not counted. */
  readonly starters: ReadonlyMap<number, readonly number[]>;
  readonly output: Template;
  /**
   * Not everything is wanted: a node that is `demanded` begins when what it waits for has settled and another node wants it, because it has
   * chosen or demanded it. Until then it costs nothing but its counter.
   */
  readonly lazy: boolean;
  readonly timeoutMs: number | null;
  /** The output is worked out however the run ends, not only when it succeeds. */
  readonly outputAlways: boolean;
  /** The run has succeeded when its output can be worked out, whatever became of its steps; and failed when it cannot. */
  readonly judgedByOutput: boolean;
  /** Another run is to be started when this one fails or times out; its dialect knows which. */
  readonly successor: boolean;
  /** A step that is tried again along with its run continues to count its failures, instead of having its budget again. */
  readonly keepsCounting: boolean;
  /** A child run that lives again makes its parent wait for it again, even a parent that had ended. */
  readonly reopensParent: boolean;
  /** What the dialect made it from; opaque here. */
  readonly origin?: unknown;
}

/** More steps than this in one definition is a generated mistake; a run of this size is still served at constant cost per step. */
export const nodesMax = 20_000;

/** A plan is made at once of a source that is not longer: some milliseconds, whatever its dialect. */
export const atOnceCharsMax = 32_768;

interface PlanFields {
  dialect: string;
  nodes: readonly PlanNode[];
  output: Template;
  /** Makes the plan lazy: these are wanted, with all that they demand; of the others, those that are chosen. */
  wanted?: readonly number[];
  timeoutMs?: number | null;
  outputAlways?: boolean;
  judgedByOutput?: boolean;
  successor?: boolean;
  keepsCounting?: boolean;
  reopensParent?: boolean;
  origin?: unknown;
}

export function makePlan(parts: PlanFields): Plan {
  return atOnce(makePlanInSlices(parts));
}

/** Joins the parts; `nodes` must name only existing nodes in `after`, without cycles: dialects check that with `findCycle` first. */
export function* makePlanInSlices(parts: PlanFields): Sliced<Plan> {
  const unique = yield* mapInSlices(parts.nodes, withoutRepeats);
  const nodes = parts.wanted === undefined ? unique : yield* markDemanded(unique, parts.wanted);
  const dependents: number[][] = nodes.map(() => []);
  const index = new Map<string, number>();
  yield* eachInSlices(nodes, ({ id, after }, at) => {
    index.set(id, at);
    for (const upstream of after) dependents[upstream]?.push(at);
  });
  yield;
  return {
    dialect: parts.dialect,
    nodes,
    index,
    dependents,
    onFirstPart: onFirstPartOf(nodes),
    starters: startersOf(nodes, dependents),
    output: parts.output,
    lazy: parts.wanted !== undefined,
    timeoutMs: parts.timeoutMs ?? null,
    outputAlways: parts.outputAlways ?? false,
    judgedByOutput: parts.judgedByOutput ?? false,
    successor: parts.successor ?? false,
    keepsCounting: parts.keepsCounting ?? false,
    reopensParent: parts.reopensParent ?? false,
    origin: parts.origin,
  };
}

function withoutRepeats(node: PlanNode): PlanNode {
  if (node.after.length < 2) return node;
  const after = new Set(node.after);
  return after.size === node.after.length ? node : { ...node, after: [...after] };
}

/** How many of those it waits for a node needs. */
export function requiredOf({ after, threshold = after.length }: Pick<PlanNode, "after" | "threshold">): number {
  return threshold;
}

/** It has a counter in each run. One that waits for a single node begins with that, but a child that lives again may be there before. */
export function countsAlways({ after, kind }: Pick<PlanNode, "after" | "kind">): boolean {
  return after.length > 1 || kind === "join" || (kind === "run" && after.length > 0);
}

function onFirstPartOf(nodes: readonly PlanNode[]): Map<number, Set<number>> {
  const found = new Map<number, Set<number>>();
  nodes.forEach(({ id, after, onFirstPart, threshold = 1 }, at) => {
    if (threshold < 1 || (after.length > 0 && threshold > after.length))
      throw new Error(`Node ${id} has a threshold of ${threshold}, expected 1 to ${after.length}.`);
    if (onFirstPart === undefined) return;
    const known = new Set(after);
    for (const source of onFirstPart) {
      if (!known.has(source)) throw new Error(`Node ${id} waits for a part of node ${source}, but not for the node.`);
      const waiting = found.get(source);
      if (waiting === undefined) found.set(source, new Set([at]));
      else waiting.add(at);
    }
  });
  return found;
}

/** The nodes that a node starts, or may choose. */
export function namedBy(node: PlanNode): number[] {
  if (node.kind !== "instant") return [];
  return [...(node.starts ?? []), ...[...(node.choice?.cases.values() ?? [])].flat(), ...(node.choice?.otherwise ?? [])];
}

function startersOf(nodes: readonly PlanNode[], dependents: readonly (readonly number[])[]): Map<number, number[]> {
  const starters = new Map<number, number[]>();
  nodes.forEach((node, at) => {
    const named = namedBy(node);
    if (named.length === 0) return;
    const waiting = new Set(dependents[at]);
    for (const next of named) {
      if (waiting.has(next)) continue;
      const known = starters.get(next);
      if (known === undefined) starters.set(next, [at]);
      else known.push(at);
    }
  });
  return starters;
}

/** What is wanted from the beginning, whatever is chosen, needs no mark of its own in each run: only the rest has to be demanded. */
function* markDemanded(nodes: readonly PlanNode[], wanted: readonly number[]): Sliced<PlanNode[]> {
  const certain = new Set(wanted);
  let walked = 0;
  // What is added on the way is walked over as well.
  for (const at of certain) {
    if (++walked % sliceItems === 0) yield;
    for (const demanded of nodes[at]?.demands ?? []) certain.add(demanded);
  }
  return yield* mapInSlices(nodes, (node, at): PlanNode => {
    const known = node.demands ?? [];
    const demands = known.filter((other) => !certain.has(other));
    if (certain.has(at) && demands.length === known.length) return node;
    return { ...node, ...(node.demands === undefined ? {} : { demands }), ...(certain.has(at) ? {} : { demanded: true }) };
  });
}

/** The ids along one cycle of `after` references, or null. Iterative: a chain of any length is fine. */
export function findCycle(nodes: readonly { id: string; after: readonly number[] }[]): string[] | null {
  const state = new Uint8Array(nodes.length);
  for (let root = 0; root < nodes.length; root++) {
    if (state[root] !== 0) continue;
    const path: { node: number; next: number }[] = [{ node: root, next: 0 }];
    state[root] = 1;
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const upstream = nodes[top.node]?.after[top.next++];
      if (upstream === undefined) {
        state[top.node] = 2;
        path.pop();
      } else if (state[upstream] === 1) {
        const ids = path.slice(path.findIndex((entry) => entry.node === upstream)).map((entry) => nodes[entry.node]?.id ?? "");
        return [...ids, nodes[upstream]?.id ?? ""];
      } else if (state[upstream] === 0) {
        state[upstream] = 1;
        path.push({ node: upstream, next: 0 });
      }
    }
  }
  return null;
}
