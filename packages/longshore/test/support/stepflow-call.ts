// A call of a component, without the task and the board around it.

import type { Json } from "../../src/core/json/json.ts";
import { newTask } from "../../src/engine/board/new-task.ts";
import type { ComponentWork } from "../../src/protocols/stepflow/server/lane.ts";

export function callOf(
  component: string,
  input: Json,
  options: { signal?: AbortSignal; startedAt?: number } = {},
): ComponentWork & { lent: number } {
  const task = newTask({ id: "run.0", step: "s1", lanes: [], input: "null", policy: null }, 0, null);
  const call: ComponentWork & { lent: number } = {
    task: { ...task, startedAt: options.startedAt ?? 0 },
    component,
    input,
    signal: options.signal ?? new AbortController().signal,
    lent: 0,
    lend<T>(wait: () => Promise<T>): Promise<T> {
      call.lent++;
      return wait();
    },
  };
  return call;
}
