// Counts the runs of each workflow in each state. Open runs are counted from the start of the server. Ended runs are counted in slices when
// the numbers are first read. A change of an ended run is counted only when that count has already reached the run.

import { type Slices, wholeRow } from "../../core/slices/slices.ts";
import type { GroupCommit } from "../commit.ts";
import { lastText, type RowStore, type TableRows } from "../rows.ts";
import type { RunCount } from "../stats/statistics.ts";
import { runPlaceTable } from "../tables/run.ts";
import { countOpenRuns } from "./local-open.ts";
import { isRunOpen, type Run, type RunState } from "./run.ts";

/** Rows that are counted without a pause. Only the first columns of each row are read. */
const sliceMax = 500;

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

export class RunTally {
  readonly #deps: RunTallyDeps;
  readonly #rows: TableRows<TalliedRun>;
  readonly #cells = new Map<string, Map<RunState, Cell>>();
  #open = 0;
  /** Ended runs up to this id are counted. */
  #upTo = "";
  #counting: Promise<void> | null = null;

  constructor(deps: RunTallyDeps) {
    this.#deps = deps;
    this.#rows = deps.store.table(runPlaceTable);
  }

  /** Counts the open runs; must be called once, before anything changes. */
  recover(): Promise<void> {
    return countOpenRuns(this.#deps.store, this.#deps.commit, (workflow, state, count) => {
      this.#open += count;
      this.#cellOf({ workflow, state }).count += count;
    });
  }

  get openRuns(): number {
    return this.#open;
  }

  /** Must be called for each run that a commit changed, with the run before that commit. */
  changed(run: Run, before: Run | undefined): void {
    if (before === undefined && run.retries === 0) this.#deps.watcher?.started(run);
    if (before?.endedAt === null) this.#countOpen(before, -1);
    if (run.endedAt === null) return this.#countOpen(run, 1);
    if (run.id <= this.#upTo) this.#cellOf(run).count++;
    this.#deps.watcher?.ended(run);
  }

  /** Must be called with the earlier row of a run that is started again or was removed. */
  left(run: TalliedRun): void {
    if (run.id <= this.#upTo) this.#cellOf(run).count--;
  }

  /** For each workflow, the number of runs in each state; states without runs are left out. */
  async counts(): Promise<RunCount[]> {
    this.#counting ??= this.#count();
    await this.#counting;
    return [...this.#cells.values()].flatMap((states) => [...states.values()].filter(({ count }) => count > 0));
  }

  #countOpen(run: TalliedRun, difference: 1 | -1): void {
    this.#open += difference;
    this.#cellOf(run).count += difference;
  }

  #cellOf({ workflow, state }: Pick<TalliedRun, "workflow" | "state">): Cell {
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
    while (this.#upTo !== lastText) {
      await slices.turn(sliceMax * (wholeRow / 2));
      await commit.read((tx) => {
        const some = [...this.#rows.scan(tx, { by: ["id"], above: [this.#upTo], limit: sliceMax })];
        // In the same read, so that no change happens in between.
        for (const run of some) if (!isRunOpen(run.state)) this.#cellOf(run).count++;
        this.#upTo = some.length < sliceMax ? lastText : (some.at(-1) as TalliedRun).id;
      });
    }
  }
}
