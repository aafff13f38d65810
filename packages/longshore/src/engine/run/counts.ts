// The numbers of runs and tasks, updated with each change. Runs and tasks that the store had at the start are counted once, at the first
// read. This happens in slices, so that no other request waits for it.

import { Slices } from "../../core/slices/slices.ts";
import type { TaskRow } from "../board/task.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, Value } from "../rows.ts";
import { type Ended, type EndedKind, endedRuns, endedTasks } from "../tables/endings.ts";
import { RunTally, type RunWatcher, type TalliedRun } from "./local-tally.ts";
import type { Run } from "./run.ts";

/** Index entries counted without a pause: about a millisecond. */
const sliceMax = 20_000;

export interface CountsDeps {
  store: RowStore;
  commit: GroupCommit;
  slices?: Slices;
  /** Is called for runs that start and end. */
  watcher?: RunWatcher;
}

export class Counts {
  readonly #commit: GroupCommit;
  readonly #runs: TableRows<Ended>;
  readonly #tasks: TableRows<Ended>;
  /** How many there are by workflow and state; it knows which runs are open. */
  readonly tally: RunTally;
  #counting: Promise<void> | null = null;
  /** Null until they have been counted. Changes before that moment are included in the count. */
  #endedRuns: number | null = null;
  #endedTasks: number | null = null;

  constructor({ store, commit, slices = new Slices(), watcher }: CountsDeps) {
    this.#commit = commit;
    this.#runs = store.table(endedRuns.table);
    this.#tasks = store.table(endedTasks.table);
    this.tally = new RunTally({ store, commit, slices, watcher });
  }

  /** Counts the open runs; must be called once, before anything changes. */
  recover(): Promise<void> {
    return this.tally.recover();
  }

  get openRuns(): number {
    return this.tally.openRuns;
  }

  /** Runs that have ended and are still stored; 0 before `counted`. */
  get endedRuns(): number {
    return this.#endedRuns ?? 0;
  }

  /** Tasks without a run that have ended and are still stored; 0 before `counted`. */
  get endedTasks(): number {
    return this.#endedTasks ?? 0;
  }

  /** Resolves when the numbers are correct. */
  counted(): Promise<void> {
    this.#counting ??= this.#count();
    return this.#counting;
  }

  async stored(): Promise<number> {
    await this.counted();
    return this.openRuns + this.endedRuns;
  }

  /** Must be called for each run that a commit changed, with the run before that commit. */
  runChanged(run: Run, before: Run | undefined): void {
    const wasOpen = before?.endedAt === null;
    this.tally.changed(run, before);
    if (run.endedAt === null) {
      if (!wasOpen && run.retries > 0) this.#addRuns(-1);
      // A run that started and ended within one commit was never seen open. A retried one has already been counted.
    } else if (wasOpen || run.retries === 0) this.#addRuns(1);
  }

  /** Must be called for each task that a commit changed. */
  taskChanged(task: TaskRow): void {
    if (task.runId === null && task.endedAt !== null && this.#endedTasks !== null) this.#endedTasks++;
  }

  /** `runs` as they were. */
  pruned({ runs = [], tasks = 0 }: { runs?: readonly TalliedRun[]; tasks?: number }): void {
    this.#addRuns(-runs.length);
    for (const run of runs) this.tally.left(run);
    if (this.#endedTasks !== null) this.#endedTasks -= tasks;
  }

  #addRuns(count: number): void {
    if (this.#endedRuns !== null) this.#endedRuns += count;
  }

  async #count(): Promise<void> {
    await this.#countSlices(this.#runs, endedRuns, (count) => {
      this.#endedRuns = count;
    });
    await this.#countSlices(this.#tasks, endedTasks, (count) => {
      this.#endedTasks = count;
    });
  }

  /** New endings sort after those already counted, so the last slice includes them all. */
  async #countSlices(rows: TableRows<Ended>, { scan }: EndedKind, done: (count: number) => void): Promise<void> {
    let count = 0;
    for (let above: Value[] = [-1, ""]; ; count += sliceMax) {
      const mark = await this.#commit.read((tx) => {
        const [last] = rows.scan(tx, { ...scan, above, offset: sliceMax - 1, limit: 1 });
        // The last row and the total are read together, so that no change happens in between.
        if (last === undefined) done(count + rows.total(tx, { ...scan, above }).rows);
        return last;
      });
      if (mark === undefined) return;
      above = [mark.endedAt, mark.id];
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
