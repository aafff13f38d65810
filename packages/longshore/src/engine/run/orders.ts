// Decides which runs accept an order, and what the order changes in a run before the run starts again.

import { isRunOpen, type Run } from "./run.ts";
import type { Order } from "./store.ts";

/** Orders that start a run again after its end. */
export const forEnded: ReadonlySet<string> = new Set(["retry", "rerun", "restart"]);

/** A durable function that is blocked is open, and may be retried. */
export function appliesTo({ state }: Pick<Run, "state">, { kind }: Pick<Order, "kind">): boolean {
  return isRunOpen(state) !== forEnded.has(kind) || (state === "blocked" && kind === "retry");
}

/** The run as it starts again; the run itself when the order changes nothing in it. */
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
