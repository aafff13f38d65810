// How many runs and tasks there are. Kept while they change; what the file held before is counted once, on the first read, a slice
// at a time so that nothing waits for it.

import type { Task } from "../board/task.ts";
import type { Run } from "./run.ts";
import type { Database } from "../../store/sqlite/driver.ts";

/** Index entries counted without a pause: about a millisecond. */
const sliceMax = 20_000;

export class Counts {
  readonly #db: Database;
  readonly #open = new Set<string>();
  #counting: Promise<void> | null = null;
  /** Null until they have been counted; changes until then are seen by the counting itself. */
  #endedRuns: number | null = null;
  #endedTasks: number | null = null;

  constructor(db: Database) {
    this.#db = db;
    for (const row of db.prepare("SELECT id FROM run WHERE ended_at IS NULL").iterate()) this.#open.add(row.id as string);
  }

  get openRuns(): number {
    return this.#open.size;
  }

  /** Runs that ended and are still kept; 0 before `counted`. */
  get endedRuns(): number {
    return this.#endedRuns ?? 0;
  }

  /** Tasks without a run that ended and are still kept; 0 before `counted`. */
  get endedTasks(): number {
    return this.#endedTasks ?? 0;
  }

  /** Resolves when the numbers are true. */
  counted(): Promise<void> {
    this.#counting ??= this.#count();
    return this.#counting;
  }

  /** Must be called for each run that a commit changed. */
  runChanged(run: Run): void {
    if (run.endedAt === null) {
      const known = this.#open.has(run.id);
      this.#open.add(run.id);
      if (!known && run.retries > 0) this.#addRuns(-1);
      // A run that began and ended within one commit was never seen open; one that was retried so has been counted before.
    } else if (this.#open.delete(run.id) || run.retries === 0) this.#addRuns(1);
  }

  /** Must be called for each task that a commit changed. */
  taskChanged(task: Task): void {
    if (task.runId === null && task.endedAt !== null && this.#endedTasks !== null) this.#endedTasks++;
  }

  pruned({ runs, tasks }: { runs: number; tasks: number }): void {
    this.#addRuns(-runs);
    if (this.#endedTasks !== null) this.#endedTasks -= tasks;
  }

  #addRuns(count: number): void {
    if (this.#endedRuns !== null) this.#endedRuns += count;
  }

  async #count(): Promise<void> {
    await this.#countSlices("run", "ended_at IS NOT NULL", (count) => {
      this.#endedRuns = count;
    });
    await this.#countSlices("task", "ended_at IS NOT NULL AND run_id IS NULL", (count) => {
      this.#endedTasks = count;
    });
  }

  /** New endings come behind the ones already counted, so the last slice, which ends the counting, has seen them all. */
  async #countSlices(table: "run" | "task", where: string, done: (count: number) => void): Promise<void> {
    const from = `FROM ${table} WHERE ${where} AND (ended_at, id) > (?, ?)`;
    const mark = this.#db.prepare(`SELECT ended_at, id ${from} ORDER BY ended_at, id LIMIT 1 OFFSET ${sliceMax - 1}`);
    const rest = this.#db.prepare(`SELECT count(*) AS count ${from}`);
    let count = 0;
    let after: [number, string] = [-1, ""];
    for (let row = mark.get(...after); row !== undefined; row = mark.get(...after)) {
      count += sliceMax;
      after = [row.ended_at as number, row.id as string];
      await new Promise((resolve) => setImmediate(resolve));
    }
    done(count + Number(rest.get(...after)?.count ?? 0));
  }
}
