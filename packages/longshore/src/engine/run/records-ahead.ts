// Records that a decision needs in large numbers, with their texts: the join of a large fork reads every task of it. They are read in slices
// before the operation, which is postponed until then. Changes by commits in the meantime are noticed, so that the operation sees the
// current state.

import type { Clock } from "../../core/clock.ts";
import { Slices, wholeRead } from "../../core/slices/slices.ts";
import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { Postponed } from "../commit-errors.ts";
import { readAll } from "../rows.ts";
import { taskChars } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import { taskIdOf } from "./run.ts";

/** Records that are read at once, in an operation or in a turn of the event loop: some milliseconds at 20 us each. */
const atOnceMax = 200;
/** Maximum time that the records stay in memory if their operation fails. */
const keptMs = 5_000;

interface Reading {
  readonly records: Map<number, TaskRow | null>;
  readonly done: Promise<void>;
  isDone: boolean;
}

export interface AheadDeps {
  readonly commit: GroupCommit;
  readonly clock: Clock;
  readonly tasks: Rows<TaskRow>;
  readonly slices?: Slices;
  /** Replaces the limit in tests. */
  readonly sliceTasks?: number;
  /** Maximum characters of records that are read: the decision refuses more of them. */
  readonly charsMax: number;
}

export class RecordsAhead {
  readonly #options: AheadDeps;
  readonly #slices: Slices;
  readonly #readings = new Map<string, Reading>();

  constructor(options: AheadDeps) {
    this.#options = options;
    this.#slices = options.slices ?? new Slices();
  }

  /**
   * Returns a reader of these records with the changes of the batch, or undefined when there are so few that they can be read at once. The
   * reader returns null for a record that has to be read in the operation. Throws `Postponed` until they are read.
   */
  of(tx: Tx, runId: string, nodes: readonly number[]): ((node: number) => TaskRow | null) | undefined {
    const { tasks, sliceTasks = atOnceMax } = this.#options;
    if (nodes.length <= sliceTasks) return undefined;
    const reading = this.#readings.get(runId) ?? this.#begin(runId, nodes);
    if (!reading.isDone) throw new Postponed(reading.done);
    return (node) => {
      const read = reading.records.get(node);
      return read == null ? null : tasks.newest(tx, read.id, read);
    };
  }

  /** Must be called for each task that a commit has changed. */
  changed({ runId, node }: Pick<TaskRow, "runId" | "node">): void {
    if (this.#readings.size > 0 && runId !== null) this.#readings.get(runId)?.records.delete(node);
  }

  #begin(runId: string, nodes: readonly number[]): Reading {
    const records = new Map<number, TaskRow | null>();
    const reading: Reading = { records, done: this.#read(runId, nodes, records), isDone: false };
    this.#readings.set(runId, reading);
    const drop = () => {
      if (this.#readings.get(runId) === reading) this.#readings.delete(runId);
    };
    reading.done.then(() => {
      const { clock } = this.#options;
      reading.isDone = true;
      clock.at(clock.now() + keptMs, drop);
    }, drop);
    return reading;
  }

  async #read(runId: string, nodes: readonly number[], records: Map<number, TaskRow | null>): Promise<void> {
    const { commit, tasks, sliceTasks = atOnceMax, charsMax } = this.#options;
    let chars = 0;
    for (let from = 0; from < nodes.length && chars <= charsMax; from += sliceTasks) {
      const some = nodes.slice(from, from + sliceTasks);
      await this.#slices.turn(some.length * wholeRead);
      const rows = await commit.read((tx) => readAll(some, (node) => tasks.get(tx, taskIdOf(runId, node))));
      let more = 0;
      some.forEach((node, at) => {
        const row = rows[at] as TaskRow | null;
        records.set(node, row);
        more += row === null ? 0 : taskChars(row);
      });
      chars += more;
      this.#slices.spent(more);
    }
  }
}
