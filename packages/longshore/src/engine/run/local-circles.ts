// Child runs that wait for their turn, and the runs that wait for them. A child run may wait for a run whose own child run waits, directly or
// through others, for the run that starts it. Then none of them would ever end. Only the start of a child run can close such a circle, so it
// is looked for then.

import type { TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import { type WaitingRun, waitingRunTable } from "../tables/gate.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Gate } from "./gate.ts";
import { isRunOpen, type Run, rootFrom } from "./run.ts";

/** How many levels of parents are searched. */
const levelsMax = 100;
/** Maximum number of gates in a search, and of open runs in the families of the runs there: reading one takes about 5 us. */
const [gatesMax, familyRowsMax] = [20, 500];
/** A row takes as long as about so many small steps of a transaction. */
const rowSteps = 50;

export interface WaitCirclesDeps {
  readonly store: RowStore;
  readonly tasks: Pick<Rows<TaskRow>, "get">;
  readonly runs: Pick<Rows<Run>, "get" | "pending">;
  /** How many open runs the family of this root has. */
  readonly openBelow: (tx: ReadTx, rootId: string) => number;
  readonly gateOf: (tx: ReadTx, name: string) => Gate;
}

export class WaitCircles {
  readonly #deps: WaitCirclesDeps;
  readonly #waiting: TableRows<WaitingRun>;

  constructor(deps: WaitCirclesDeps) {
    this.#deps = deps;
    this.#waiting = deps.store.table(waitingRunTable);
  }

  /**
   * The runs that have started the run of this step, directly or through others, and that run. `parents`: the step for which a run was
   * started, as far as it is known.
   */
  ancestors(tx: ReadTx, parentTaskId: string, parents = new Map<string, string | null>()): ReadonlySet<string> {
    const { tasks, runs } = this.#deps;
    const found = new Set<string>();
    let taskId: string | null = parentTaskId;
    for (let level = 0; taskId !== null && level < levelsMax; level++) {
      const runId: string | null = tasks.get(tx, taskId)?.runId ?? null;
      if (runId === null) break;
      found.add(runId);
      taskId = parents.get(runId) ?? runs.get(tx, runId)?.parentTaskId ?? null;
      parents.set(runId, taskId);
    }
    return found;
  }

  /** A run at this gate that could not end before a child run of this step that waits there. Undefined when the search is too long. */
  closing(tx: Tx, parentTaskId: string, name: string, runs: number): string | undefined {
    const ancestors = this.ancestors(tx, parentTaskId);
    if (!this.#mayClose(tx, ancestors, name)) return undefined;
    const gates = this.#gatesFrom(tx, ancestors, name);
    if (gates === null) return undefined;
    // Every run counts as stuck until one that it waits for has its turn. A retried run may exceed the limit.
    const stuck = new Set(gates.keys());
    const isStuck = ({ behind }: Counted) => behind === null || behind.some((gate) => stuck.has(gate));
    for (let before = -1; before !== stuck.size; ) {
      before = stuck.size;
      for (const [gate, { counted, max }] of gates) if (counted.filter(isStuck).length < (gate === name ? runs : max)) stuck.delete(gate);
    }
    return stuck.has(name) ? gates.get(name)?.counted.find(isStuck)?.id : undefined;
  }

  /** A circle contains a gate that counts an ancestor, and at which a run waits. */
  #mayClose(tx: ReadTx, ancestors: ReadonlySet<string>, name: string): boolean {
    const held = readAll([...ancestors], (id) => this.#deps.runs.get(tx, id)?.gate ?? null);
    return held.some((gate) => gate !== null && (gate === name || this.#deps.gateOf(tx, gate).waiting > 0));
  }

  /** The gates that decide when this one lets a run begin. Null when there are too many. */
  #gatesFrom(tx: Tx, ancestors: ReadonlySet<string>, first: string): ReadonlyMap<string, Reached> | null {
    const found = new Map<string, Reached>();
    const families = new Map<string, readonly Below[]>();
    const next = [first];
    let rows = 0;
    for (let name = next.pop(); name !== undefined; name = next.pop()) {
      if (found.has(name)) continue;
      if (found.size === gatesMax) return null;
      const { open, runs: max } = this.#deps.gateOf(tx, name);
      const counted: Counted[] = [];
      found.set(name, { counted, max });
      for (const id of open) {
        const run = ancestors.has(id) ? null : this.#deps.runs.get(tx, id);
        if (run === null) {
          counted.push({ id, behind: null });
          continue;
        }
        const root = rootFrom(run);
        if (!families.has(root)) {
          rows += this.#deps.openBelow(tx, root);
          if (rows > familyRowsMax) return null;
          families.set(root, this.#waitingBelow(tx, root));
        }
        const behind = new Set((families.get(root) ?? []).filter(({ above }) => above.has(id)).map(({ gate }) => gate));
        counted.push({ id, behind: [...behind] });
        next.push(...behind);
      }
    }
    tx.spend(rows * rowSteps);
    return found;
  }

  /** The runs of a family that wait for their turn. */
  #waitingBelow(tx: ReadTx, rootId: string): readonly Below[] {
    const { runs } = this.#deps;
    const scan = { by: ["root_id"], equal: [rootId], having: ["root_id", "turn"], without: "ended_at" };
    const stored = readAll([...this.#waiting.scan(tx, scan)], ({ id }) => runs.get(tx, id));
    const fresh = runs.pending(tx).filter((run) => run.rootId === rootId);
    const all = new Map([...stored, ...fresh].flatMap((run) => (run === null ? [] : [[run.id, run] as const])));
    const waiting = [...all.values()].filter(({ state, turn, gate }) => isRunOpen(state) && turn !== null && gate !== null);
    const parents = new Map<string, string | null>();
    return readAll(waiting, ({ gate, parentTaskId }) => {
      const above = parentTaskId === null ? new Set<string>() : this.ancestors(tx, parentTaskId, parents);
      return { gate: gate as string, above };
    });
  }
}

/** A run that a gate counts. `behind`: the gates at which runs wait that it has started; null for an ancestor of the new child run. */
interface Counted {
  readonly id: string;
  readonly behind: readonly string[] | null;
}

/** A gate, with the number of runs that may be open there. */
interface Reached {
  readonly counted: readonly Counted[];
  readonly max: number;
}

/** A run that waits at this gate, and all runs above it. */
interface Below {
  readonly gate: string;
  readonly above: ReadonlySet<string>;
}
