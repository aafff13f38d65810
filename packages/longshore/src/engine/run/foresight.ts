// Predicts what an order would do to a run. The decision is made as usual, but nothing is stored.

import type { TaskRow } from "../board/task.ts";
import type { Change } from "./decide.ts";
import type { Plan } from "./plan.ts";
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

/** A decision with the rows that it was made from. */
export interface Considered {
  readonly run: Run;
  readonly plan: Plan;
  readonly changes: readonly Change[];
  /** All records, if the decision needed them. */
  readonly all: ReadonlyMap<number, TaskRow> | undefined;
  readonly restart: RestartPlan | undefined;
}

export function foreseenOf({ run, plan, changes, all, restart }: Considered): Foreseen {
  let { state } = run;
  const starts = new Set<number>();
  const again = new Set<number>();
  let cancels = false;
  for (const change of changes) {
    if (change.kind === "run") ({ state } = change.run);
    else if (change.kind === "post" || change.kind === "record") starts.add(change.node);
    else if (change.kind === "forget" || change.kind === "reopen") again.add(change.node);
    else if (change.kind === "forget-all") for (const [node] of change.steps) again.add(node);
    else if (change.kind === "cancel-open") cancels = true;
  }
  const lives = (node: number) => all?.has(node) === true && all.get(node)?.state !== "forgotten";
  for (const node of restart?.all ?? []) if (lives(node)) again.add(node);
  for (const node of starts) if (lives(node)) again.add(node);
  const isNewLife = all !== undefined && changes.some((change) => change.kind === "run" && change.run.retries !== run.retries);
  const kept = isNewLife ? [...all.keys()].filter((node) => lives(node) && !again.has(node)) : null;
  const isRunStep = (node: number) => plan.nodes[node]?.kind === "run";
  const childrenOf = [...again]
    .filter(isRunStep)
    .slice(0, childrenMax)
    .map((node) => ({ taskId: taskIdOf(run.id, node), attempt: all?.get(node)?.attempt ?? 0 }));
  const names = (nodes: Iterable<number>) =>
    [...nodes]
      .filter((node) => !plan.nodes[node]?.hidden)
      .sort((a, b) => a - b)
      .flatMap((node) => plan.nodes[node]?.id ?? all?.get(node)?.step ?? []);
  return { state, starts: names(starts), again: names(again), kept: kept === null ? null : names(kept), cancels, childrenOf };
}
