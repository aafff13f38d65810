// Rebuilds the memory of the board when a server starts or a node takes the data over. It reads the tasks that workers have or may take.

import type { Clock } from "../../core/clock.ts";
import { eachRow, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import { openTasks } from "../tables/reader-tables.ts";
import { type OpenTask, openTaskTable, taskHeadTable } from "../tables/task.ts";
import type { HandOuts } from "./hand-outs.ts";
import type { Limits } from "./limits.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import { dueAfterRestart, restored } from "./restart.ts";
import { nextDeadline, type TaskRow } from "./task.ts";
import type { TaskLife } from "./task-life.ts";

/** Open tasks per page: some megabytes, because their texts are not read. */
const openPageRows = 5_000;

export interface RecoveryDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly tasks: Rows<TaskRow>;
  readonly queues: ReadyQueues;
  readonly limits: Limits;
  readonly handOuts: HandOuts;
  readonly life: TaskLife;
  /** The time of the next deadline of `id`; null when it has none. */
  deadline(id: string, at: number | null): void;
}

export class LocalRecovery {
  readonly #deps: RecoveryDeps;
  readonly #heads: TableRows<TaskRow>;
  readonly #open: TableRows<OpenTask>;

  constructor(deps: RecoveryDeps) {
    this.#deps = deps;
    this.#heads = deps.store.table(taskHeadTable);
    this.#open = deps.store.table(openTaskTable);
  }

  /**
   * Rebuilds memory from the store. Every live hold gets one full term, because its holder may have renewed it without a write. Every offer
   * also gets its full time, because no worker could take it while the server was down.
   */
  async run(): Promise<void> {
    const { commit, clock, tasks, limits, handOuts, life, deadline } = this.#deps;
    const now = clock.now();
    life.recover();
    // Registered at the end: until then, `expire` would see the tasks as they were before the restart.
    const due: (readonly [id: string, at: number])[] = [];
    await commit.read((tx) => handOuts.recover(tx, limits, now));
    // The tasks whose whole row is kept in memory. They are few: nearly all open tasks are queued, and wait for nothing.
    let whole: string[] = [];
    await eachRow(
      commit,
      this.#open,
      // Waits have no lane. Their rows stay on disk, and their deadlines are read when they come near.
      openTasks,
      {
        pageRows: openPageRows,
        at: ({ id }) => [id],
        take: (stored) => {
          life.seen(stored);
          if (stored.state !== "queued" || dueAfterRestart(stored, now) !== stored.dueAt) whole.push(stored.id);
          else this.#restore(stored, now, due);
        },
        paged: async () => {
          for (const task of await this.#restoredHeads(whole, now)) {
            this.#restore(task, now, due);
            if (task.state !== "queued") limits.hold(task.limits);
            tasks.restore(task.id, task);
          }
          whole = [];
        },
      },
    );
    for (const [id, at] of due) deadline(id, at);
  }

  /** Without their texts, which are read when they are needed. */
  async #restoredHeads(ids: readonly string[], now: number): Promise<TaskRow[]> {
    if (ids.length === 0) return [];
    const stored = await this.#deps.commit.read((tx) => readAll(ids, (id) => this.#heads.get(tx, id)));
    return stored.flatMap((task) => (task === null ? [] : [restored(task, now)]));
  }

  /** Puts a task back on its lane. */
  #restore(task: OpenTask, now: number, due: (readonly [id: string, at: number])[]): void {
    if (task.state === "queued") this.#deps.queues.restore(task, now);
    const next = nextDeadline(task, now);
    if (next !== null) due.push([task.id, next]);
  }
}
