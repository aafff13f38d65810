// Counts the runs of each workflow in each state. Open runs are counted from the start of the server. Ended runs are counted in slices when
// the numbers are first read. A change of an ended run is counted only when that count has already reached the run.

import { type Slices, wholeRow } from "../../core/slices/slices.ts";
import { eachRow } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows, TableSpec } from "../rows.ts";
import type { RunCount } from "../stats/statistics.ts";
import { isRunOpen, type Run, type RunState } from "./run.ts";

/** Rows that are counted without a pause. Only the first columns of each row are read. */
const sliceMax = 500;
/** Above every id in the order of bytes. */
const last = "\u{10ffff}";

export type TalliedRun = Pick<Run, "id" | "workflow" | "state">;

type Cell = { -readonly [key in keyof RunCount]: RunCount[key] };

/** Called after the commit, for each run that was started and each that has ended. Must be short. */
export interface RunWatcher {
  started(run: Run): void;
  ended(run: Run): void;
}

export interface RunTallyDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly slices: Slices;
  readonly watcher?: RunWatcher | undefined;
}

/** Only columns that are stored before the texts of a row. */
const tallyTable: TableSpec<TalliedRun> = {
  name: "run",
  key: ["id"],
  columns: ["id", "workflow", "state"].map((column) => [column, () => null] as const),
  of: (row) => ({ id: row.id as string, workflow: row.workflow as string, state: row.state as RunState }),
};

export class RunTally {
  readonly #deps: RunTallyDeps;
  readonly #rows: TableRows<TalliedRun>;
  readonly #cells = new Map<string, Map<RunState, Cell>>();
  /** The cell in which each open run is counted. */
  readonly #open = new Map<string, Cell>();
  /** Ended runs up to this id are counted. */
  #upTo = "";
  #counting: Promise<void> | null = null;

  constructor(deps: RunTallyDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(tallyTable);
  }

  /** Loads the open runs; must be called once, before anything changes. */
  async recover(): Promise<void> {
    const scan = { by: ["workflow", "id"], without: "ended_at" };
    const at = ({ workflow, id }: TalliedRun) => [workflow, id];
    await eachRow(this.#deps.commit, this.#rows, scan, { at, take: (run) => this.#opened(run, this.#cellOf(run)) });
  }

  get openRuns(): number {
    return this.#open.size;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Must be called for each run that a commit changed. */
  changed(run: Run): void {
    const before = this.#open.get(run.id);
    if (before === undefined && run.retries === 0) this.#deps.watcher?.started(run);
    const cell = this.#cellOf(run);
    if (run.endedAt === null) {
      if (before === cell) return;
      if (before !== undefined) before.count--;
      this.#opened(run, cell);
      return;
    }
    if (before !== undefined) before.count--;
    this.#open.delete(run.id);
    if (run.id <= this.#upTo) cell.count++;
    this.#deps.watcher?.ended(run);
  }

  /** Must be called with the earlier row of a run that had ended and is started again, and of a run that was removed. */
  left(run: TalliedRun): void {
    if (run.id <= this.#upTo) this.#cellOf(run).count--;
  }

  /** For each workflow, the number of runs in each state; states without runs are left out. */
  async counts(): Promise<RunCount[]> {
    this.#counting ??= this.#count();
    await this.#counting;
    return [...this.#cells.values()].flatMap((states) => [...states.values()].filter(({ count }) => count > 0));
  }

  #opened(run: TalliedRun, cell: Cell): void {
    this.#open.set(run.id, cell);
    cell.count++;
  }

  #cellOf({ workflow, state }: TalliedRun): Cell {
    let states = this.#cells.get(workflow);
    if (states === undefined) {
      states = new Map();
      this.#cells.set(workflow, states);
    }
    let cell = states.get(state);
    if (cell === undefined) {
      cell = { workflow, state, count: 0 };
      states.set(state, cell);
    }
    return cell;
  }

  async #count(): Promise<void> {
    const { commit, slices } = this.#deps;
    while (this.#upTo !== last) {
      await slices.turn(sliceMax * (wholeRow / 2));
      await commit.read((tx) => {
        const some = [...this.#rows.scan(tx, { by: ["id"], above: [this.#upTo], limit: sliceMax })];
        // In the same read, so that no change happens in between.
        for (const run of some) if (!isRunOpen(run.state)) this.#cellOf(run).count++;
        this.#upTo = some.length < sliceMax ? last : (some.at(-1) as TalliedRun).id;
      });
    }
  }
}
