// To which runs an order applies, and what it changes of a run before the run begins another life.

import { isRunOpen, type Run } from "./run.ts";
import type { Order } from "./store.ts";

/** Orders that begin another life of a run that has ended. */
export const forEnded: ReadonlySet<string> = new Set(["retry", "rerun", "restart"]);

/** A durable function that is blocked is open, and may be retried. */
export function appliesTo({ state }: Pick<Run, "state">, { kind }: Pick<Order, "kind">): boolean {
  return isRunOpen(state) !== forEnded.has(kind) || (state === "blocked" && kind === "retry");
}

/** The run as it begins another life; the run itself when the order changes nothing of it. */
export function begunBy(run: Run, order: Order, now: number): Run {
  if (order.kind === "restart") {
    const { definitionId = run.definitionId, input = run.input, settings = run.settings, alias = run.alias, variables = null } = order;
    return { ...run, definitionId, input, settings, alias, variables, createdAt: now };
  }
  if (order.kind !== "rerun") return run;
  const { runInput = run.input, settings = run.settings, alias = run.alias } = order;
  const isChanged = runInput !== run.input || settings !== run.settings || alias !== run.alias;
  return isChanged ? { ...run, input: runInput, settings, alias } : run;
}
