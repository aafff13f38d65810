// Start limits: which runs may begin, and which wait for their turn. The transaction that ends a run also begins the next one. The cost of
// a start and of an end does not depend on the number of runs that wait.

import { LongshoreError } from "../../core/errors.ts";
import type { CheckedLimit } from "../../core/start-limit.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { gateRows, type WaitingRun, waitingRunTable } from "../tables/gate.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Definitions } from "./definitions.ts";
import { type Gate, limitText, waitingRunsMax } from "./gate.ts";
import type { Messages } from "./messages.ts";
import { isRunOpen, type Run } from "./run.ts";

/** Runs that one transaction begins. Only a limit that was raised lets more of them begin at once. */
const begunMax = 10;
/** A start takes as long as about so many small steps of a transaction. */
const startSteps = 1_000;

export interface LocalGatesDeps {
  readonly store: RowStore;
  readonly commit: GroupCommit;
  readonly runs: Rows<Run>;
  readonly definitions: Definitions;
  /** Begins a run that has waited. */
  readonly begin: (tx: Tx, run: Run) => void;
  readonly cancel: (tx: Tx, runId: string, reason: string) => void;
  readonly messages: Pick<Messages, "leave">;
}

/** What happens to a run that wants to begin. `by`: the open run that is the reason for skipping it. */
export type Entry =
  | { readonly kind: "begins" }
  | { readonly kind: "waits"; readonly turn: number }
  | { readonly kind: "skipped"; readonly by: string };

export class LocalGates {
  readonly #deps: LocalGatesDeps;
  readonly #rows: Rows<Gate>;
  readonly #waiting: TableRows<WaitingRun>;
  #isAdvancing = false;

  constructor(deps: LocalGatesDeps) {
    this.#deps = deps;
    this.#rows = gateRows(deps.store, deps.commit);
    this.#waiting = deps.store.table(waitingRunTable);
  }

  /** Throws LONGSHORE_LIMIT when too many runs wait. */
  refuseFull(tx: Tx, name: string, { runs }: CheckedLimit): void {
    const { waiting } = this.of(tx, name);
    if (waiting < waitingRunsMax) return;
    const message = `${waiting} runs wait for their turn already (${limitText({ name, runs })}): wait until some have begun.`;
    throw new LongshoreError("LONGSHORE_LIMIT", message, { detail: { expected: `at most ${waitingRunsMax} runs that wait` } });
  }

  /** Returns what the run does now, and counts it. */
  enter(tx: Tx, id: string, name: string, limit: CheckedLimit): Entry {
    if (this.of(tx, name).open.includes(id)) return { kind: "begins" };
    const { runs, overlap } = limit;
    if (overlap === "cancel-previous") {
      const { open } = this.of(tx, name);
      const reason = `run ${id} follows: ${limitText({ name, runs })}`;
      for (const earlier of open.slice(0, Math.max(0, open.length + 1 - runs))) this.#deps.cancel(tx, earlier, reason);
    }
    // After a limit was raised, runs that wait may begin without an end before them.
    if (this.of(tx, name).waiting > 0) this.advance(tx, name);
    const gate = { ...this.of(tx, name), runs };
    if (gate.waiting === 0 && gate.open.length < runs) {
      this.#put(tx, { ...gate, open: [...gate.open, id] });
      return { kind: "begins" };
    }
    const by = gate.open.at(-1);
    if (overlap === "skip" && by !== undefined) return { kind: "skipped", by };
    const turn = gate.last + 1;
    this.#put(tx, { ...gate, last: turn, waiting: gate.waiting + 1 });
    return { kind: "waits", turn };
  }

  /** Must be called when a run has ended, or begun another life. `before`: the run as it was. */
  changed(tx: Tx, before: Run): void {
    const { id, gate: name } = before;
    const run = this.#deps.runs.get(tx, id);
    if (name === null || run === null || isRunOpen(run.state) === (before.endedAt === null)) return;
    const gate = this.of(tx, name);
    // A run that begins another life may exceed the limit: then no other run begins until enough have ended.
    if (isRunOpen(run.state)) return gate.open.includes(id) ? undefined : this.#put(tx, { ...gate, open: [...gate.open, id] });
    if (before.turn !== null) return this.#put(tx, { ...gate, waiting: gate.waiting - 1 });
    if (!gate.open.includes(id)) return;
    this.#put(tx, { ...gate, open: gate.open.filter((each) => each !== id) });
    this.advance(tx, name);
  }

  /** Begins the runs whose turn it is. */
  advance(tx: Tx, name: string): void {
    // A run that ends as soon as it begins must not begin the next one inside of its own beginning: very many may wait.
    if (this.#isAdvancing) return this.#deps.messages.leave(tx, { kind: "take-turns", gate: name });
    this.#isAdvancing = true;
    try {
      for (let begun = 0; ; begun++) {
        const gate = this.of(tx, name);
        const next = gate.waiting === 0 ? null : this.#first(tx, name);
        if (next === null) return;
        const max = this.#maxOf(tx, next);
        if (max !== null && gate.open.length >= max) return;
        if (begun === begunMax) return this.#deps.messages.leave(tx, { kind: "take-turns", gate: name });
        tx.spend(startSteps);
        const open = max === null ? gate.open : [...gate.open, next.id];
        this.#put(tx, { ...gate, open, waiting: gate.waiting - 1 });
        this.#deps.begin(tx, max === null ? { ...next, gate: null } : next);
      }
    } finally {
      this.#isAdvancing = false;
    }
  }

  /** The gate in this batch; an empty one when no run is open or waits. */
  of(tx: ReadTx, name: string): Gate {
    return this.#rows.get(tx, name) ?? { name, open: [], last: 0, waiting: 0, runs: 1 };
  }

  #put(tx: Tx, gate: Gate): void {
    if (gate.open.length === 0 && gate.waiting === 0) this.#rows.remove(tx, gate.name);
    else this.#rows.put(tx, gate.name, gate);
  }

  /** The run that has waited longest. */
  #first(tx: Tx, name: string): Run | null {
    const { runs } = this.#deps;
    for (let above = 0; ; ) {
      const scan = { by: ["gate", "turn"], equal: [name], above: [above], having: "turn", limit: 1 };
      const [found] = this.#waiting.scan(tx, scan);
      if (found === undefined) break;
      const run = runs.get(tx, found.id);
      if (run !== null && run.gate === name && run.turn !== null) return run;
      above = found.turn;
    }
    // All that wait have begun to wait in this batch.
    const fresh = runs.pending(tx).filter((run) => run.gate === name && run.turn !== null);
    return fresh.reduce<Run | null>((first, run) => (first === null || Number(run.turn) < Number(first.turn) ? run : first), null);
  }

  /** By the newest version, so that a limit that was raised applies to the runs that wait. Null when it has no limit any more. */
  #maxOf(tx: Tx, { workflow }: Run): number | null {
    const { definitions } = this.#deps;
    const newest = definitions.newest(tx, workflow);
    return newest === null ? null : (definitions.plan(tx, newest).limit?.runs ?? null);
  }
}
