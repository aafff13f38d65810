// Maps names on the wire to tasks of the board and back. `task_id` is a run and `node_id` one of its steps. A task without a run is its own
// `task_id`, and `node_id` is the name of its step.

import type { Board } from "../../../engine/board/board.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { DefinitionCache } from "../../../engine/run/definition-cache.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan, PlanNode } from "../../../engine/run/plan.ts";
import { taskIdOf } from "../../../engine/run/run.ts";
import type { Runs } from "../../../engine/run/runs.ts";

export interface Place {
  /** The board's id. */
  readonly taskId: string;
  /** Null for a task without a run. */
  readonly plan: Plan | null;
  readonly node: PlanNode | null;
}

/** The name of a task on the wire. */
export interface WireName {
  readonly task_id: string;
  readonly node_id: string;
}

export interface PlacesDeps {
  readonly runs: Pick<Runs, "run" | "definitionById">;
  readonly board: Pick<Board, "task">;
  plan(definition: Definition): Plan;
}

export class Places {
  readonly #deps: PlacesDeps;
  /** By run. */
  readonly #plans = new DefinitionCache<Plan>();

  constructor(deps: PlacesDeps) {
    this.#deps = deps;
  }

  /** Undefined when there is no such task. */
  async find({ task_id, node_id }: WireName): Promise<Place | undefined> {
    const plan = await this.#planOf(task_id);
    if (plan === undefined) {
      const task = await this.#deps.board.task(task_id);
      return task?.runId === null && task.step === node_id ? { taskId: task.id, plan: null, node: null } : undefined;
    }
    const index = plan.index.get(node_id);
    const node = index === undefined ? undefined : plan.nodes[index];
    return index === undefined || node === undefined ? undefined : { taskId: taskIdOf(task_id, index), plan, node };
  }

  async of(task: TaskRow): Promise<WireName & Place> {
    const { id: taskId, runId, step } = task;
    const plan = runId === null ? null : ((await this.#planOf(runId)) ?? null);
    const node = plan?.nodes[task.node] ?? null;
    return { taskId, plan, node, task_id: runId ?? taskId, node_id: node?.id ?? step };
  }

  async #planOf(runId: string): Promise<Plan | undefined> {
    const known = this.#plans.get(runId);
    if (known !== undefined) return known;
    const run = await this.#deps.runs.run(runId);
    const definition = run === undefined ? undefined : await this.#deps.runs.definitionById(run.definitionId);
    if (definition === undefined) return undefined;
    return this.#plans.set(runId, this.#deps.plan(definition), definition);
  }
}
