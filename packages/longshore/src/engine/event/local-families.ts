// The tasks that the events of one family of runs have posted for subscribers. A subscriber may start runs of the same family, which send more
// events. Runs that have ended do not count, so the tasks between them have a limit of their own.

import { LongshoreError } from "../../core/errors.ts";
import { lastText, type RowStore, type TableRows } from "../rows.ts";
import { openTasks } from "../tables/reader-tables.ts";
import { taskPlaceTable } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import { familyEventTasksMax } from "./store.ts";

/** Tasks that are counted in the time of one small step of a transaction. */
const countedPerStep = 100;

/** The id of a subscriber's task begins with this, so that the tasks of a family are found together. */
export function eventTaskPrefix(rootId: string | undefined): string {
  return rootId === undefined ? "event-" : `event-${rootId}-`;
}

export class FamilyEvents {
  readonly #tasks: TableRows<unknown>;
  readonly #max: number;

  constructor(store: RowStore, max: number = familyEventTasksMax) {
    this.#tasks = store.table(taskPlaceTable);
    this.#max = max;
  }

  /** Throws LONGSHORE_LIMIT when the family has too many tasks. Uncommitted tasks of the current batch are not counted. */
  admit(tx: Tx, rootId: string): void {
    const prefix = eventTaskPrefix(rootId);
    const { rows } = this.#tasks.total(tx, { ...openTasks, above: [prefix], below: [prefix + lastText] });
    tx.spend(Math.ceil(rows / countedPerStep));
    if (rows < this.#max) return;
    const message = `The events of run ${rootId}, and of runs that it started, have ${rows} tasks of event handlers that have not ended: the limit is ${this.#max}.`;
    const detail = { field: "rootId", expected: `at most ${this.#max} tasks of event handlers below one root` };
    throw new LongshoreError("LONGSHORE_LIMIT", `${message} Wait until some have ended, or send fewer events.`, { detail });
  }
}
