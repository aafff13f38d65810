// Rows that are only read as the source for `longshore verify`: those of a data folder, or of PostgreSQL.

import { Missing } from "../core/missing.ts";
import type { RowStore } from "../engine/rows.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import { LocalHistory } from "../engine/run/local-history.ts";
import type { Plan, PlanNode } from "../engine/run/plan.ts";
import { definitionTable } from "../engine/tables/definition.ts";
import type { ReadTx } from "../engine/tx.ts";
import type { Finding } from "../verify/finding.ts";
import type { HistorySource } from "../verify/verify.ts";
import { checkRows } from "./verify-rows.ts";

/** How many runs, or tasks without a run, are read at a time. */
const pageRows = 500;
/** Maximum number of loads of one read. Each load adds at least one row, so reaching the limit is a defect. */
const loadsMax = 10_000;

/** `others` finds problems outside of runs and tasks. */
export function historySource(store: RowStore, dialects: readonly Dialect[], others: () => AsyncIterable<Finding>): HistorySource {
  const history = new LocalHistory({ store, nodeOf: nodeOf(store, dialects), withParts: true });
  const read = <T>(work: (tx: ReadTx) => T) => readRows(store, work);
  return {
    async *runs() {
      for (let after = ""; ; ) {
        const ids = await read((tx) => history.runIds(tx, after, pageRows));
        for (const id of ids) {
          const run = await read((tx) => history.run(tx, id));
          if (run !== undefined) yield run;
        }
        if (ids.length < pageRows) return;
        after = ids.at(-1) as string;
      }
    },
    async *looseTasks() {
      for (let after = ""; ; ) {
        const { items, next } = await read((tx) => history.looseTasks(tx, after, pageRows));
        yield* items;
        if (next === null) return;
        after = next;
      }
    },
    async *others() {
      yield* checkRows(store, read);
      yield* others();
    },
    kept: () => read((tx) => history.kept(tx)),
    run: (id) => read((tx) => history.runPage(tx, id, { after: "", limit: 0 })),
    task: (id) => read((tx) => history.task(tx, id)),
    step: async (runId, step) => (await read((tx) => history.run(tx, runId)))?.tasks.find((task) => task.step === step),
  };
}

async function readRows<T>(store: RowStore, work: (tx: ReadTx) => T): Promise<T> {
  const tx: ReadTx = { isOperation: false, loaded: new Map() };
  for (let loads = 0; loads < loadsMax; loads++) {
    try {
      return work(tx);
    } catch (thrown) {
      if (!(thrown instanceof Missing)) throw thrown;
      await store.load(tx, thrown.all);
    }
  }
  throw new Error(`A read was performed ${loadsMax} times and still misses rows.`);
}

/** Compiles each definition once. For a definition that cannot be compiled any more, nothing is known about its nodes. */
function nodeOf(store: RowStore, known: readonly Dialect[]): (tx: ReadTx, definitionId: string, node: number) => PlanNode | undefined {
  const dialects = new Map(known.map((dialect) => [dialect.name, dialect]));
  const definitions = store.table(definitionTable);
  const plans = new Map<string, Plan | null>();
  const compile = (tx: ReadTx, id: string): Plan | null => {
    const definition = definitions.get(tx, id);
    try {
      return definition === null ? null : (dialects.get(definition.dialect)?.compile(definition.source) ?? null);
    } catch {
      // The runs of such a definition are still checked by every other rule.
      return null;
    }
  };
  return (tx, id, node) => {
    const plan = plans.has(id) ? plans.get(id) : compile(tx, id);
    plans.set(id, plan ?? null);
    return plan?.nodes[node];
  };
}
