// Graphs of FlowKit on a whole engine whose workers a test plays by hand: tasks are taken from the lane of their type.

import { onTestFinished } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";
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

  async function take(type: string, holder = "w-1"): Promise<TaskRow> {
    const [task] = await board.claim({ reach: { names: [type], labels: [] }, serves: type, holder, termMs: 60_000 });
    if (task === undefined) throw new Error(`There is no task of type ${type}.`);
    return task;
  }

  const holdOf = ({ id: taskId, grant }: TaskRow) => ({ taskId, grant });

  return {
    engine,
    clock,
    submit,
    take,
    put: (task: TaskRow, ...uids: string[]) =>
      parts.put(
        holdOf(task),
        uids.map((uid) => ({ uid, value: JSON.stringify({ of: uid }) })),
      ),
    done: (task: TaskRow, output: JsonObject = {}) => board.complete(holdOf(task), JSON.stringify(output)),
    fail: (task: TaskRow, error: string, retryable: boolean) => board.fail(holdOf(task), { error, retryable }),
    withdrawn: (task: TaskRow) => board.withdraw(holdOf(task), { error: "cancelled" }),
  };
}
