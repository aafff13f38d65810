// Families of runs: a root, and all runs that its steps, its events and its failure have started, directly or indirectly. When a definition
// starts itself twice, the number of runs doubles with every level. So the open runs of one root have a separate limit.

import { LongshoreError } from "../../core/errors.ts";
import { quotaDefaults } from "../../core/quotas.ts";
import type { RowStore, TableRows } from "../rows.ts";
import { runIdTable } from "../tables/run.ts";
import type { ReadTx } from "../tx.ts";
import type { Run } from "./run.ts";

/** Families whose number of runs is in memory. Others are counted when their next run starts, so many small ones take no memory. */
const countedMax = 1_000;

type FamilyRun = Pick<Run, "rootId" | "endedAt">;

export class Families {
  readonly #max: number;
  readonly #runs: TableRows<unknown>;
  /** The number of open runs below a root, by the root's id. The first entry is the one that has not been used for longest. */
  readonly #open = new Map<string, number>();

  constructor(store: RowStore, max: number = quotaDefaults.familyRuns) {
    this.#max = max;
    this.#runs = store.table(runIdTable);
  }

  /** Throws LONGSHORE_LIMIT when the family is full. Uncommitted runs of the current batch are not counted. */
  admit(tx: ReadTx, rootId: string): void {
    if (this.openBelow(tx, rootId) < this.#max) return;
    const message = `Run ${rootId} has the maximum of ${this.#max} open runs that it started, directly or through others.`;
    const detail = { field: "rootId", expected: `at most ${this.#max} open runs below one root` };
    throw new LongshoreError("LONGSHORE_LIMIT", `${message} Wait until some have ended, or start fewer at once.`, { detail });
  }

  /** Must be called for each run that a commit changed, with the run before that commit. */
  changed({ rootId, endedAt }: FamilyRun, before: FamilyRun | undefined): void {
    const open = rootId === null ? undefined : this.#open.get(rootId);
    if (rootId === null || open === undefined) return;
    const difference = (endedAt === null ? 1 : 0) - (before?.endedAt === null ? 1 : 0);
    if (difference !== 0) this.#open.set(rootId, open + difference);
  }

  /** Uncommitted runs of the current batch are not counted. */
  openBelow(tx: ReadTx, rootId: string): number {
    const known = this.#open.get(rootId);
    const open = known ?? this.#runs.total(tx, { by: ["root_id"], equal: [rootId], having: "root_id", without: "ended_at" }).rows;
    this.#open.delete(rootId);
    this.#open.set(rootId, open);
    for (const id of this.#open.keys()) {
      if (this.#open.size <= countedMax) break;
      this.#open.delete(id);
    }
    return open;
  }
}
