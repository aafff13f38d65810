// The ids of open runs by workflow, in memory, so that a start with `unlessRunning` does not read the store first.

import type { Run } from "./run.ts";

const none: readonly string[] = [];

export class OpenRunIds {
  readonly #ids = new Map<string, Set<string>>();

  of(workflow: string): Iterable<string> {
    return this.#ids.get(workflow) ?? none;
  }

  /** Must be called for each run that a commit changed, and for each open run at the start. Open runs are never removed. */
  changed({ id, workflow, endedAt }: Pick<Run, "id" | "workflow" | "endedAt">): void {
    const ids = this.#ids.get(workflow);
    if (endedAt === null) {
      if (ids === undefined) this.#ids.set(workflow, new Set([id]));
      else ids.add(id);
    } else if (ids?.delete(id) && ids.size === 0) this.#ids.delete(workflow);
  }
}
