// Starts that come close together. The first one makes a run with a delay. Each further one replaces the input of this run, and begins the
// delay again, but not beyond `atMost`. A row names the run until it begins or ends.

import type { DebounceSource } from "../../core/debounce.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore } from "../rows.ts";
import { gateRows } from "../tables/gate.ts";
import type { Tx } from "../tx.ts";
import { debouncePrefix, type Gate, gateName } from "./gate.ts";
import { isRunOpen, type Run } from "./run.ts";
import type { NewRun } from "./store.ts";

export class LocalDebounce {
  readonly #rows: Rows<Gate>;
  readonly #runs: Rows<Run>;

  constructor({ store, commit, runs }: { store: RowStore; commit: GroupCommit; runs: Rows<Run> }) {
    this.#rows = gateRows(store, commit);
    this.#runs = runs;
  }

  /** The run that this start replaces the input of; null when the start makes a new run. */
  waiting(tx: Tx, wanted: NewRun, debounce: DebounceSource): Run | null {
    const [id] = this.#rows.get(tx, nameOf(wanted, debounce))?.open ?? [];
    const run = id === undefined ? null : this.#runs.get(tx, id);
    return run !== null && isRunOpen(run.state) && run.startAt !== null ? run : null;
  }

  /** The run waits for further starts. */
  add(tx: Tx, wanted: NewRun, debounce: DebounceSource): void {
    const name = nameOf(wanted, debounce);
    this.#rows.put(tx, name, { name, open: [wanted.id], last: 0, waiting: 0, runs: 1 });
  }

  /** The run has begun or ended: further starts make a new run. */
  remove(tx: Tx, run: Run, debounce: DebounceSource): void {
    const name = nameOf(run, debounce);
    if (this.#rows.get(tx, name)?.open[0] === run.id) this.#rows.remove(tx, name);
  }
}

function nameOf(run: Pick<Run, "workflow" | "input">, debounce: DebounceSource): string {
  return debouncePrefix + gateName(run, debounce);
}
