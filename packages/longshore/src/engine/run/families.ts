// Families of runs: a root, and all runs that its steps have started, directly or indirectly. When a definition starts itself twice, the
// number of runs doubles with every level. So the open runs of one root have a separate limit.

import { LongshoreError } from "../../core/errors.ts";
import { quotaDefaults } from "../../core/quotas.ts";
import type { Run } from "./run.ts";

export class Families {
  readonly #max: number;
  /** The open runs below each root, by the root's id. */
  readonly #open = new Map<string, Set<string>>();

  constructor(max: number = quotaDefaults.familyRuns) {
    this.#max = max;
  }

  /** Throws LONGSHORE_LIMIT when the family is full. Uncommitted runs of the current batch are not counted. */
  admit(rootId: string): void {
    if ((this.#open.get(rootId)?.size ?? 0) < this.#max) return;
    const message = `Run ${rootId} has the maximum of ${this.#max} open runs that it started, directly or through others.`;
    const detail = { field: "rootId", expected: `at most ${this.#max} open runs below one root` };
    throw new LongshoreError("LONGSHORE_LIMIT", `${message} Wait until some have ended, or start fewer at once.`, { detail });
  }

  /** Must be called for each run that a commit changed, and for each open run at the start. */
  changed({ id, rootId, endedAt }: Pick<Run, "id" | "rootId" | "endedAt">): void {
    if (rootId === null) return;
    const open = this.#open.get(rootId);
    if (endedAt === null) {
      if (open === undefined) this.#open.set(rootId, new Set([id]));
      else open.add(id);
    } else if (open?.delete(id) && open.size === 0) this.#open.delete(rootId);
  }
}
