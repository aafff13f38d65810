// Remembers, for each token, the root runs below which its workers hold tasks. A worker may start and read runs for a task that it holds.
// But these requests name only the root run. The proof of a hold is a report with the id of the task. A token that may start any run is not
// remembered.

import type { Caller } from "../../../../core/actions.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { settingsOf } from "../../dialect/settings.ts";

export interface HolderDeps {
  readonly board: Pick<Board, "task">;
  readonly runs: Pick<Runs, "run">;
}

interface Hold {
  readonly taskId: string;
  readonly grant: number;
}

interface Place extends Hold {
  readonly key: string;
}

export class Holders {
  readonly #deps: HolderDeps;
  readonly #places = new Map<string, Place>();
  /** By token and root run. */
  readonly #holds = new Map<string, Map<string, Place>>();

  constructor(deps: HolderDeps) {
    this.#deps = deps;
  }

  knows(taskId: string): boolean {
    return this.#places.has(taskId);
  }

  /**
   * An accepted report proves that its caller holds the task. The first token that proves this owns the hold. So other tokens gain nothing
   * when they know the task's id.
   */
  async reported({ taskId, grant }: Hold, caller: Caller): Promise<void> {
    if (caller.may("run.start") || this.#places.get(taskId)?.grant === grant) return;
    const task = await this.#deps.board.task(taskId);
    const run = task?.runId == null ? undefined : await this.#deps.runs.run(task.runId);
    if (run === undefined) return;
    const place: Place = { taskId, grant, key: keyOf(caller, settingsOf(run).rootRunId ?? run.id) };
    this.#remove(taskId);
    this.#places.set(taskId, place);
    const holds = this.#holds.get(place.key) ?? new Map<string, Place>();
    this.#holds.set(place.key, holds.set(taskId, place));
  }

  /** Must be called for each task that a commit changed. */
  changed(task: TaskRow): void {
    const place = this.#places.get(task.id);
    if (place !== undefined && !isHeld(task, place)) this.#remove(task.id);
  }

  async holds(caller: Caller, rootRunId: string): Promise<boolean> {
    for (const place of this.#holds.get(keyOf(caller, rootRunId))?.values() ?? []) {
      const task = await this.#deps.board.task(place.taskId);
      if (task !== undefined && isHeld(task, place)) return true;
      // The task ended while the report was being handled.
      this.#remove(place.taskId);
    }
    return false;
  }

  #remove(taskId: string): void {
    const place = this.#places.get(taskId);
    if (place === undefined) return;
    this.#places.delete(taskId);
    const holds = this.#holds.get(place.key);
    holds?.delete(taskId);
    if (holds?.size === 0) this.#holds.delete(place.key);
  }
}

function isHeld(task: TaskRow, { grant }: Hold): boolean {
  return task.grant === grant && (task.state === "held" || task.state === "cancelling");
}

/** Token names contain no spaces. */
function keyOf({ name = "" }: Caller, rootRunId: string): string {
  return `${name} ${rootRunId}`;
}
