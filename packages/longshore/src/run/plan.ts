// The one internal graph that every dialect compiles to. A plan is made once per definition, never changed, and shared by all its runs.

import type { Backoff } from "../backoff.ts";
import type { LimitKey } from "../board/limits.ts";
import type { Lane } from "../board/task.ts";

/** A value to be worked out when a step starts. Opaque here: only the dialect that made it can resolve it. */
export type Template = unknown;

export interface RetryPolicy {
  /** How many failed attempts may be followed by another. */
  failures: number;
  /** How many lost holds (a worker that vanished) may be. A budget of its own: a crash of the worker is not the task's fault. */
  lost: number;
  backoff: Backoff;
}

export interface Timeouts {
  /** From queueing until somebody must have taken it. */
  claimMs?: number;
  /** From the attempt's first claim until it must have ended. */
  endMs?: number;
  /** From the first queueing until the task must have ended, retries included. */
  totalMs?: number;
}

interface NodeBase {
  /** The step's id, unique in the plan. */
  readonly id: string;
  readonly input: Template;
  /** When it resolves to false the step is skipped; absent means always. */
  readonly when?: Template;
  /** Indexes of the nodes that must settle first, each once. */
  readonly after: readonly number[];
  /** `done`: every one of them must have succeeded, else this step is skipped. `settled`: any ending will do. */
  readonly waitsFor: "done" | "settled";
  readonly timeouts: Timeouts;
}

/** Work for a worker. */
export interface TaskNode extends NodeBase {
  readonly kind: "task";
  /** In order of preference; the first with a recent poller is taken, else the last. */
  readonly lanes: readonly Lane[];
  readonly priority: number;
  readonly retry: RetryPolicy;
  readonly limits: readonly LimitKey[];
}

/** A run of another definition; its output is the step's. */
export interface RunNode extends NodeBase {
  readonly kind: "run";
  readonly workflow: string;
}

export type PlanNode = TaskNode | RunNode;

export interface Plan {
  readonly dialect: string;
  readonly nodes: readonly PlanNode[];
  /** Node index by step id. */
  readonly index: ReadonlyMap<string, number>;
  /** For each node the nodes that wait for it, in definition order. */
  readonly dependents: readonly (readonly number[])[];
  readonly output: Template;
  readonly timeoutMs: number | null;
}

/** More steps than this in one definition is a generated mistake; a run of this size is still served at constant cost per step. */
export const nodesMax = 20_000;

/** Joins the parts; `nodes` must name only existing nodes in `after`, without cycles: dialects check that with `findCycle` first. */
export function makePlan(parts: { dialect: string; nodes: readonly PlanNode[]; output: Template; timeoutMs?: number | null }): Plan {
  const nodes = parts.nodes.map((node) => ({ ...node, after: [...new Set(node.after)] }));
  const dependents: number[][] = nodes.map(() => []);
  nodes.forEach((node, at) => {
    for (const upstream of node.after) dependents[upstream]?.push(at);
  });
  return {
    dialect: parts.dialect,
    nodes,
    index: new Map(nodes.map((node, at) => [node.id, at])),
    dependents,
    output: parts.output,
    timeoutMs: parts.timeoutMs ?? null,
  };
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
