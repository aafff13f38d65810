// Ends the holds of workers whose process has ended, for a program that starts such processes itself. Otherwise their tasks wait until the
// leases end.

import type { Engine } from "./engine.ts";

/**
 * Counts the attempts of these workers as lost, and removes the workers from the list. So other workers may take the tasks at once.
 * `idPrefix` is the beginning of their ids.
 */
export async function endWorkers({ board, workers }: Pick<Engine, "board" | "workers">, idPrefix: string): Promise<void> {
  const ended = [...workers.views()].filter(({ id }) => id.startsWith(idPrefix));
  for (const { id, tasks } of ended) {
    for (const { taskId } of tasks) {
      const task = await board.task(taskId);
      // Another worker may have taken it meanwhile.
      if (task?.holder !== id) continue;
      await board.fail({ taskId, grant: task.grant }, { error: "The process of its worker has ended.", retryable: true, spends: "lost" });
    }
    workers.ended(id);
  }
}
