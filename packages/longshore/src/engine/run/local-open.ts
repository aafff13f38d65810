// How many open runs each workflow has in each state. At the start they are counted through indexes: a large workflow costs two pages and a
// few counts, for any number of sleeping runs.

import type { GroupCommit } from "../commit.ts";
import { lastText, type RowStore, type Value } from "../rows.ts";
import { runPlaceTable } from "../tables/run.ts";
import type { Run, RunState } from "./run.ts";

/** Rows per page. A workflow that fills the rest of a page is counted, and not read. */
const pageRows = 500;
/** Open states with an index of their own: few runs are in one of them. */
const halted: readonly RunState[] = ["paused", "blocked"];

/** Passes each workflow, each state of its open runs, and the number of these runs to `take`. */
export async function countOpenRuns(
  store: RowStore,
  commit: GroupCommit,
  take: (workflow: string, state: RunState, count: number) => void,
): Promise<void> {
  const rows = store.table(runPlaceTable);
  const open = { by: ["workflow", "id"], without: "ended_at" };
  for (let above: Value[] | undefined; ; ) {
    const page = await commit.read((tx) => [...rows.scan(tx, { ...open, above, limit: pageRows })]);
    const isLast = page.length < pageRows;
    const large = isLast ? undefined : page.at(-1)?.workflow;
    for (const { workflow, state } of page) if (workflow !== large) take(workflow, state, 1);
    if (large === undefined) return;
    // No page begins in the middle of a workflow: the last workflow of the page before was counted completely.
    const counts = await commit.read((tx) => {
      const all = rows.total(tx, { by: ["workflow"], equal: [large], without: "ended_at" }).rows;
      const some = halted.map((state) => {
        const scan = { by: ["workflow", "state"], equal: [large, state], only: { state: halted } };
        return { state, count: rows.total(tx, scan).rows };
      });
      return [{ state: "running" as const, count: some.reduce((left, { count }) => left - count, all) }, ...some];
    });
    for (const { state, count } of counts) if (count > 0) take(large, state, count);
    above = [large, lastText];
  }
}

/** The number of open runs of each workflow. When it is 0, a start need not look for an open run in the store. */
export class OpenRuns {
  readonly #counts = new Map<string, number>();

  add(workflow: string, difference: number): void {
    const count = (this.#counts.get(workflow) ?? 0) + difference;
    if (count > 0) this.#counts.set(workflow, count);
    else this.#counts.delete(workflow);
  }

  has(workflow: string): boolean {
    return this.#counts.has(workflow);
  }

  /** Must be called for each run that a commit changed, with the run before that commit. */
  changed({ workflow, endedAt }: Pick<Run, "workflow" | "endedAt">, before: Pick<Run, "endedAt"> | undefined): void {
    const difference = (endedAt === null ? 1 : 0) - (before?.endedAt === null ? 1 : 0);
    if (difference !== 0) this.add(workflow, difference);
  }
}
