// What the audit shows of orders to runs, and of new definitions.

import { difference, type Ordered } from "../audit/audit.ts";
import { type Audit, unaudited } from "../audit/local-audit.ts";
import type { Tx } from "../tx.ts";
import type { Definition } from "./dialect.ts";
import type { Plan } from "./plan.ts";
import type { Run } from "./run.ts";
import type { NewRun, Order } from "./store.ts";

export class OrderNotes {
  readonly #audit: Audit;
  readonly #planOf: (tx: Tx, run: Run) => Plan;

  constructor(audit: Audit = unaudited, planOf: (tx: Tx, run: Run) => Plan) {
    this.#audit = audit;
    this.#planOf = planOf;
  }

  /** `obeyed` is the run after the order. */
  order(tx: Tx, run: Run, order: Order, obeyed: Run = run): void {
    // The plan of a step that no caller has named is not needed.
    if (tx.orderer === undefined) return;
    const step = "node" in order ? this.#planOf(tx, obeyed).nodes[order.node]?.id : undefined;
    const values = difference(runValue(run), runValue(obeyed));
    const became = step === undefined ? values.became : { ...values.became, step };
    this.#note(tx, { verb: order.kind, target: run.id, was: values.was, became, reason: order.kind === "cancel" ? order.error : null });
  }

  hastened(tx: Tx, runId: string): void {
    this.#note(tx, { verb: "hasten", target: runId, was: null, became: null });
  }

  /** A start is not an order to a run, but running a run again is one. */
  started(tx: Tx, { id, workflow, rerunOf }: NewRun): void {
    if (rerunOf !== undefined) this.#note(tx, { verb: "rerun", target: rerunOf, was: null, became: { run: id, workflow } });
  }

  defined(tx: Tx, before: Definition | null, { id, name, version }: Definition): void {
    const was = before === null ? null : { version: before.version, id: before.id };
    this.#audit.note(tx, { verb: "define", kind: "definition", target: name, was, became: { version, id } });
  }

  #note(tx: Tx, ordered: Omit<Ordered, "kind">): void {
    this.#audit.note(tx, { ...ordered, kind: "run" });
  }
}

function runValue({ state, retries, definitionId }: Run) {
  return { state, retries, definition: definitionId };
}
