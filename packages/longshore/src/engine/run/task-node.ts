// Finds the node of a task. It is in the plan of the run, except for the commands of a durable function: their rows describe them.

import type { TaskRow } from "../board/task.ts";
import { commandOf, isCommand } from "./driven-state.ts";
import type { Plan, PlanNode } from "./plan.ts";
import { noRetry } from "./retry.ts";

type Described = Pick<TaskRow, "node" | "step" | "command" | "lane" | "priority" | "limits">;

export function taskNode(plan: Plan, task: Described): PlanNode | undefined {
  const { node, step, lane, priority, limits } = task;
  const command = plan.driven ? commandOf(task) : undefined;
  if (command === undefined) return plan.nodes[node];
  const base = { id: step, input: null, after: [0], waitsFor: "settled" as const, timeouts: {} };
  if (lane !== null) return { ...base, kind: "task", lanes: [lane], priority, retry: noRetry, limits };
  if (isCommand(task, "run")) return { ...base, kind: "run", workflow: command.slice("run ".length) };
  if (isCommand(task, "sleep") || isCommand(task, "signal")) return { ...base, kind: "wait", until: null };
  return { ...base, kind: "instant", output: null };
}
