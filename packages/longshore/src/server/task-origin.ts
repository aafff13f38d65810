// Finds the workflow of a task, and whether the task is shown to people.

import type { TaskRow } from "../engine/board/task.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { Plan } from "../engine/run/plan.ts";
import type { Run } from "../engine/run/run.ts";
import type { Later, ReadTx } from "../engine/tx.ts";
import type { TaskOrigin } from "../protocols/server-half.ts";

export interface TaskOriginDeps {
  read(work: (tx: ReadTx) => TaskOrigin): Later<TaskOrigin>;
  readonly runs: { get(tx: ReadTx, id: string): Run | null };
  readonly definitions: { byId(tx: ReadTx, id: string): Definition | null };
  plan(definition: Definition): Plan;
}

const noOrigin: TaskOrigin = { workflow: null, isHidden: false };

export function taskOriginBy({ read, runs, definitions, plan }: TaskOriginDeps) {
  return ({ runId, node }: Pick<TaskRow, "runId" | "node">): Later<TaskOrigin> => {
    if (runId === null) return noOrigin;
    return read((tx) => {
      const run = runs.get(tx, runId);
      const definition = run === null ? null : definitions.byId(tx, run.definitionId);
      const isHidden = definition !== null && plan(definition).nodes[node]?.hidden === true;
      return { workflow: run?.workflow ?? null, isHidden };
    });
  };
}
