// What the order in the open dialog would do. The graph behind the dialog shows it, too.

import { signal } from "@preact/signals";
import type { Foreseen, RunGraph } from "../core/shapes.ts";
import type { StepState } from "../graph/model.ts";

export const foreseen = signal<({ readonly run: string } & Foreseen) | null>(null);

/** The states of the steps as they would be. */
export function foreseenStates(states: ReadonlyMap<number, StepState>, graph: RunGraph): ReadonlyMap<number, StepState> {
  const expected = foreseen.value;
  if (expected === null || expected.run !== graph.runId || !expected.applies) return states;
  const numbers = new Map(graph.ids.map((id, at) => [id, graph.nodes[at] ?? -1]));
  const next = new Map(states);
  const set = (ids: readonly string[], state: string) => {
    for (const id of ids) next.set(numbers.get(id) ?? -1, { state, attempts: 1, durationMs: null });
  };
  set(expected.again, "waiting");
  set(expected.starts, "queued");
  set(expected.cancelled, "cancelled");
  return next;
}
