// All records of a run, for the few decisions that need every one of them, such as another life of the run. The records of a large run are
// read in slices, and the operation is postponed until then. Changes by commits in the meantime are recorded, so the operation sees the
// current state. The texts of a record are read on request, because all together may be gigabytes.

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
import { RecordsView } from "./records-view.ts";

export interface RecordsDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  tasks: Rows<TaskRow>;
  slices?: Slices;
  /** Replaces the limit in tests. */
  sliceTasks?: number;
}

/** Records that are read at once, in an operation or in a turn of the event loop: some milliseconds at 20 us each. */
const atOnceMax = 200;
/** Maximum time that the records stay in memory if their operation fails. */
const keptMs = 5_000;
/** When the records changed during this many tries, the result is computed at once. */
const triesMax = 5;

type Heads = ReadonlyMap<number, TaskRow>;

export interface Work {
  readonly runId: string;
  readonly key: string;
  /** What `all` returned. */
  readonly all: Heads;
  readonly ignored?: number;
}

interface Reading {
  /** By node, without texts. */
  readonly heads: Map<number, TaskRow>;
  /** Resolves when all records are loaded. */
  readonly done: Promise<void>;
  isDone: boolean;
  /** Rises with each change. */
  version: number;
  /** A result that a decision computes from the records. */
  made: { readonly key: string; readonly version: number; readonly result: unknown } | undefined;
  tries: number;
  /** The number of computations in progress: the records are kept until these end. */
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

  /**
   * The records with the changes of the batch. `most`: the number of records that the run should have; a durable function has more, of its
   * earlier lives. Throws `Postponed` for a large run that has not been read yet.
   */
  all(tx: Tx, runId: string, most: number): ReadonlyMap<number, TaskRow> {
    const { tasks, sliceTasks = atOnceMax } = this.#options;
    const known = this.#readings.get(runId);
    const few = known === undefined && most <= sliceTasks ? [...this.#page(tx, runId, beginOf(runId), sliceTasks + 1)] : undefined;
    const newest = (task: TaskRow) => this.#withTexts(tx, tasks.newest(tx, task.id, task) ?? task);
    const pending = this.#pending(tx, runId);
    if (few !== undefined && few.length <= sliceTasks) {
      const records = new Map<number, TaskRow>();
      for (const task of few) records.set(task.node, newest(task));
      for (const [node, task] of pending) records.set(node, task);
      return records;
    }
    const reading = known ?? this.#begin(runId);
    if (!reading.isDone) throw new Postponed(reading.done);
    tx.after(() => this.#readings.delete(runId));
    return new RecordsView(reading.heads, pending, newest);
  }

  /**
   * The result that a decision computes from all records. For a large run it is computed in slices, and the operation is postponed until
   * then. `make` is pure and reads no texts; `key` identifies its result. `ignored`: a node whose record does not matter, because the
   * operation itself may have changed it.
   */
  worked<Made>(tx: Tx, { runId, key, all, ignored }: Work, make: (records: Heads) => Sliced<Made>): Made {
    const reading = this.#readings.get(runId);
    if (reading === undefined) return atOnce(make(all));
    const pending = this.#pending(tx, runId);
    if (++reading.tries > triesMax) return atOnce(make(new RecordsView(reading.heads, pending)));
    // The changes of this batch may still be undone: the next batch computes the result.
    if (ignored !== undefined) pending.delete(ignored);
    if (pending.size > 0) throw new Postponed(this.#slices.turn(0));
    const { made, version } = reading;
    if (made?.key === key && made.version === version) return made.result as Made;
    reading.makings++;
    const making = inTurns(make(reading.heads), this.#slices).then((result) => {
      reading.made = { key, version, result };
    });
    const end = () => {
      reading.makings--;
      this.#dropLater(runId, reading);
    };
    making.then(end, end);
    throw new Postponed(making);
  }

  /** Must be called for each task that a commit has changed. */
  changed(task: TaskRow): void {
    if (this.#readings.size === 0 || task.runId === null) return;
    const reading = this.#readings.get(task.runId);
    if (reading === undefined) return;
    reading.heads.set(task.node, task);
    reading.version++;
  }

  #pending(tx: Tx, runId: string): Map<number, TaskRow> {
    const records = new Map<number, TaskRow>();
    for (const task of this.#options.tasks.pending(tx)) if (task.runId === runId) records.set(task.node, task);
    return records;
  }

  #begin(runId: string): Reading {
    const heads = new Map<number, TaskRow>();
    const reading: Reading = {
      heads,
      done: this.#read(runId, heads),
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

  async #read(runId: string, heads: Map<number, TaskRow>): Promise<void> {
    const { commit, sliceTasks = atOnceMax } = this.#options;
    for (let after = beginOf(runId); ; ) {
      await this.#slices.turn(sliceTasks * wholeRow);
      const page = await commit.read((tx) => [...this.#page(tx, runId, after, sliceTasks)]);
      for (const task of page) heads.set(task.node, task);
      if (page.length < sliceTasks) return;
      after = (page.at(-1) as TaskRow).id;
    }
  }

  #page(tx: ReadTx, runId: string, after: string, limit?: number): Iterable<TaskRow> {
    return this.#heads.scan(tx, { by: ["id"], above: [after], below: [`${runId}/`], limit });
  }

  /** A row of a scan has no texts. A row that a commit has changed since then has its texts. */
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
