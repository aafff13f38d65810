// All records of a run, for the few decisions that need every one of them: another life of the run, or an output that depends on its newest step.
// Those of a large run are read in slices before the operation, which is postponed until then. What commits change meanwhile is noted, so that
// the operation finds them as they are. The texts of a record are read when they are asked for: all of them together may be gigabytes, and
// most of these decisions look at none, or at those of one step.

import type { Clock } from "../../core/clock.ts";
import { atOnce, inTurns, type Sliced } from "../../core/slices/slice-work.ts";
import { Slices, wholeRow } from "../../core/slices/slices.ts";
import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { taskHeadTable, taskTable } from "../tables/task.ts";
import type { ReadTx, Tx } from "../tx.ts";

export interface RecordsDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  tasks: Rows<TaskRow>;
  slices?: Slices;
  /** Replaces the limit in tests. */
  sliceTasks?: number;
}

/** Records that are read at once, in an operation or in a turn of the event loop: at 20 us each some milliseconds. */
const atOnceMax = 200;
/** What has been read stays in memory for this long at most, should its operation fail. */
const keptMs = 5_000;
/** What is made of records that change all the time is made at once in the end. */
const triesMax = 5;

interface Reading {
  readonly tasks: Map<string, TaskRow>;
  /** Resolves when all of them are there. */
  readonly done: Promise<void>;
  isDone: boolean;
  /** Rises with each change. */
  version: number;
  /** What a decision makes of them. */
  made: { readonly key: string; readonly version: number; readonly result: unknown } | undefined;
  tries: number;
  /** How often something is being made of them just now: until then they are kept, however long it takes. */
  makings: number;
  keptUntil: number;
}

export class Records {
  readonly #options: RecordsDeps;
  readonly #rows: TableRows<TaskRow>;
  readonly #heads: TableRows<TaskRow>;
  readonly #slices: Slices;
  readonly #readings = new Map<string, Reading>();

  constructor(options: RecordsDeps) {
    this.#options = options;
    this.#rows = options.store.table(taskTable);
    this.#heads = options.store.table(taskHeadTable);
    this.#slices = options.slices ?? new Slices();
  }

  /** As the batch has left them. `most`: there are no more than that. Throws `Postponed` for a large run that has not been read yet. */
  all(tx: Tx, runId: string, most: number): Map<number, TaskRow> {
    const { sliceTasks = atOnceMax } = this.#options;
    if (most <= sliceTasks) return this.#newest(tx, runId, this.#page(tx, runId, beginOf(runId)));
    const reading = this.#readings.get(runId) ?? this.#begin(runId);
    if (!reading.isDone) throw new Postponed(reading.done);
    tx.after(() => this.#readings.delete(runId));
    return this.#newest(tx, runId, reading.tasks.values());
  }

  /**
   * What a decision makes of all of them, which it has by now. For a large run it is made in slices before the operation, which is postponed
   * until then. `make` is pure, and `key` says what it makes.
   */
  worked<Made>(tx: Tx, runId: string, key: string, make: () => Sliced<Made>): Made {
    const { tasks } = this.#options;
    const reading = this.#readings.get(runId);
    if (reading === undefined || ++reading.tries > triesMax) return atOnce(make());
    // What this batch has changed may be taken back yet: the next one knows.
    if (tasks.pending(tx).some((task) => task.runId === runId)) throw new Postponed(this.#slices.turn(0));
    const { made, version } = reading;
    if (made?.key === key && made.version === version) return made.result as Made;
    reading.makings++;
    const making = inTurns(make(), this.#slices).then((result) => {
      reading.made = { key, version, result };
    });
    const end = () => {
      reading.makings--;
      this.#dropLater(runId, reading);
    };
    making.then(end, end);
    throw new Postponed(making);
  }

  /** To be called for each task that a commit has changed. */
  changed(task: TaskRow): void {
    if (this.#readings.size === 0 || task.runId === null) return;
    const reading = this.#readings.get(task.runId);
    if (reading === undefined) return;
    reading.tasks.set(task.id, task);
    reading.version++;
  }

  #newest(tx: Tx, runId: string, stored: Iterable<TaskRow>): Map<number, TaskRow> {
    const { tasks } = this.#options;
    const records = new Map<number, TaskRow>();
    for (const task of stored) records.set(task.node, this.#withTexts(tx, tasks.newest(tx, task.id, task) ?? task));
    for (const task of tasks.pending(tx)) if (task.runId === runId) records.set(task.node, task);
    return records;
  }

  #begin(runId: string): Reading {
    const tasks = new Map<string, TaskRow>();
    const reading: Reading = {
      tasks,
      done: this.#read(runId, tasks),
      isDone: false,
      version: 0,
      made: undefined,
      tries: 0,
      makings: 0,
      keptUntil: 0,
    };
    this.#readings.set(runId, reading);
    reading.done.then(
      () => {
        reading.isDone = true;
        this.#dropLater(runId, reading);
      },
      () => this.#drop(runId, reading),
    );
    return reading;
  }

  #dropLater(runId: string, reading: Reading): void {
    const { clock } = this.#options;
    const end = clock.now() + keptMs;
    reading.keptUntil = end;
    clock.at(end, () => {
      if (reading.makings === 0 && reading.keptUntil === end) this.#drop(runId, reading);
    });
  }

  #drop(runId: string, reading: Reading): void {
    if (this.#readings.get(runId) === reading) this.#readings.delete(runId);
  }

  async #read(runId: string, tasks: Map<string, TaskRow>): Promise<void> {
    const { commit, sliceTasks = atOnceMax } = this.#options;
    for (let after = beginOf(runId); ; ) {
      await this.#slices.turn(sliceTasks * wholeRow);
      const page = await commit.read((tx) => [...this.#page(tx, runId, after, sliceTasks)]);
      for (const task of page) tasks.set(task.id, task);
      if (page.length < sliceTasks) return;
      after = (page.at(-1) as TaskRow).id;
    }
  }

  #page(tx: ReadTx, runId: string, after: string, limit?: number): Iterable<TaskRow> {
    return this.#heads.scan(tx, { by: ["id"], above: [after], below: [`${runId}/`], limit });
  }

  /** A row of a scan has none; one that a commit has changed since has its own. */
  #withTexts(tx: Tx, task: TaskRow): TaskRow {
    if ((task.input as string | undefined) !== undefined) return task;
    const whole = () => this.#rows.get(tx, task.id);
    return Object.defineProperties(
      { ...task },
      {
        input: { get: () => whole()?.input ?? "null", enumerable: true },
        output: { get: () => whole()?.output ?? null, enumerable: true },
      },
    );
  }
}

/** '.' and '/' are neighbours: the ids of a run's tasks are between both. */
function beginOf(runId: string): string {
  return `${runId}.`;
}
