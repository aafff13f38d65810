// The remaining work of a run that ended: its next life continues with it.

import type { Plan } from "./plan.ts";
import { backlogOf, type Run } from "./run.ts";

/** Nodes that the run was about to start, or to reach, when it ended: they have no records yet. */
export function dueIn(run: Run, plan: Plan): ReadonlySet<number> {
  const due = new Set<number>();
  // For nodes that wait for several others, planRestart counts the settled upstreams.
  const reach = (node: number) => {
    for (const next of plan.dependents[node] ?? []) if (plan.nodes[next]?.waitsFor === "any") due.add(next);
  };
  for (const { rest, node } of backlogOf(run)) {
    // An event during a pause.
    if (node !== undefined) reach(node);
    for (const next of [...(rest?.starts ?? []), ...(rest?.resumed ?? []), ...(rest?.wanted ?? [])]) due.add(next);
    for (const settled of rest?.settled ?? []) if (!settled.chose) reach(settled.node);
  }
  return due;
}
