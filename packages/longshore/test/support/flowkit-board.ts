// Graphs of FlowKit on a whole engine whose workers a test plays by hand: tasks are taken from the lane of their type.

import { onTestFinished } from "vitest";
import type { Clock } from "../../src/clock.ts";
import type { Task } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
import type { Json, JsonObject } from "../../src/json.ts";
import { FlowkitTasks } from "../../src/protocols/flowkit/server/coordinator/tasks.ts";
import { openEngine } from "../../src/server/engine.ts";
import { TestClock } from "../../src/testing/clock.ts";

export interface GraphsOptions {
  readonly clock?: Clock;
  readonly directory?: string | null;
}

export async function openGraphs({ clock = new TestClock(), directory = null }: GraphsOptions = {}) {
  const engine = await openEngine({ directory, clock });
  onTestFinished(() => engine.close());
  const { runs, board, parts } = engine;

  async function submit(nodes: readonly JsonObject[], { params = {}, ...graph }: { params?: JsonObject; edges?: Json } = {}): Promise<Run> {
    return new FlowkitTasks({ runs }).create({ params, graph: { nodes, ...graph } });
  }

  async function take(type: string, holder = "w-1"): Promise<Task> {
    const [task] = await board.claim({ reach: { names: [type], labels: [] }, serves: type, holder, termMs: 60_000 });
    if (task === undefined) throw new Error(`There is no task of type ${type}.`);
    return task;
  }

  const holdOf = ({ id: taskId, grant }: Task) => ({ taskId, grant });

  return {
    engine,
    clock,
    submit,
    take,
    put: (task: Task, ...uids: string[]) =>
      parts.put(
        holdOf(task),
        uids.map((uid) => ({ uid, value: JSON.stringify({ of: uid }) })),
      ),
    done: (task: Task, output: JsonObject = {}) => board.complete(holdOf(task), JSON.stringify(output)),
    fail: (task: Task, error: string, retryable: boolean) => board.fail(holdOf(task), { error, retryable }),
    withdrawn: (task: Task) => board.withdraw(holdOf(task), { error: "cancelled" }),
  };
}
