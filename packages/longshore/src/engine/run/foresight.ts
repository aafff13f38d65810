// Predicts what an order would do to a run. The decision is made as usual, but nothing is stored.

import type { Sliced } from "../../core/slices/slice-work.ts";
import type { Change } from "./decide.ts";
import type { Plan } from "./plan.ts";
import type { RecordHead } from "./records-view.ts";
import type { RestartPlan } from "./restart-plan.ts";
import { type Run, type RunState, taskIdOf } from "./run.ts";

export interface Foreseen {
  /** The state of the run afterwards. */
  readonly state: RunState;
  /** Steps that begin at once. */
  readonly starts: readonly string[];
  /** Steps that have begun before and begin again, at once or later. */
  readonly again: readonly string[];
  /** Steps that keep their results. Null for an order that does not start the run again. */
  readonly kept: readonly string[] | null;
  /** Whether all open steps are cancelled. */
  readonly cancels: boolean;
  /** Attempts of steps that begin again: their child runs are dropped. At most a hundred. */
  readonly childrenOf: readonly { readonly taskId: string; readonly attempt: number }[];
}

const childrenMax = 100;

/** A decision with the rows that it was made from. It may be read after the operation. */
export interface Considered {
  readonly run: Run;
  readonly plan: Plan;
  readonly changes: readonly Change[];
  /** All records, if the decision needed them. */
  readonly all: ReadonlyMap<number, RecordHead> | undefined;
  readonly restart: RestartPlan | undefined;
}

/** Nodes that are looked at in one turn of the event loop: about a millisecond. */
const nodesAtOnce = 2_000;

export function* foreseenInSlices({ run, plan, changes, all, restart }: Considered): Sliced<Foreseen> {
  let { state } = run;
  let cancels = false;
  let last = plan.nodes.length - 1;
  const starts = new Set<number>();
  const again = new Set<number>();
  const lives = (node: number) => all?.has(node) === true && all.get(node)?.state !== "forgotten";
  let looked = 0;
  const isFull = () => ++looked % nodesAtOnce === 0;
  for (const change of changes) {
    if (isFull()) yield;
    if (change.kind === "run") ({ state } = change.run);
    else if (change.kind === "post" || change.kind === "record") starts.add(change.node);
    else if (change.kind === "forget" || change.kind === "reopen") again.add(change.node);
    else if (change.kind === "forget-all") for (const [node] of change.steps) again.add(node);
    else if (change.kind === "cancel-open") cancels = true;
  }
  for (const node of restart?.all ?? []) {
    if (isFull()) yield;
    if (lives(node)) again.add(node);
  }
  for (const node of starts) {
    if (lives(node)) again.add(node);
    last = Math.max(last, node);
  }
  for (const node of all?.keys() ?? []) {
    if (isFull()) yield;
    last = Math.max(last, node);
  }
  const isNewLife = all !== undefined && changes.some((change) => change.kind === "run" && change.run.retries !== run.retries);
  const names = { starts: [] as string[], again: [] as string[], kept: [] as string[] };
  const childrenOf: { taskId: string; attempt: number }[] = [];
  // In the order of their numbers. The commands of a durable function have higher numbers than the nodes of its plan.
  for (let node = 0; node <= last; node++) {
    if (isFull()) yield;
    const repeats = again.has(node);
    if (repeats && childrenOf.length < childrenMax && plan.nodes[node]?.kind === "run")
      childrenOf.push({ taskId: taskIdOf(run.id, node), attempt: all?.get(node)?.attempt ?? 0 });
    if (plan.nodes[node]?.hidden) continue;
    const name = plan.nodes[node]?.id ?? all?.get(node)?.step;
    if (name === undefined) continue;
    if (starts.has(node)) names.starts.push(name);
    if (repeats) names.again.push(name);
    else if (isNewLife && lives(node)) names.kept.push(name);
  }
  return { state, ...names, kept: isNewLife ? names.kept : null, cancels, childrenOf };
}
