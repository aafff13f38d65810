// What the coordinator needs from the database in which other implementations' workers store results. Absent without a database: our own
// workers store results in the data file, cannot miss input, and notice that they are late.

import type { JsonObject } from "../../../../core/json/json.ts";
import type { Hold } from "../../../../engine/board/task.ts";
import type { WireName } from "../task-addresses.ts";

export interface ForeignResults {
  /** The result of a node that is complete in the database; null when it is not. Such a node is not started. */
  completed(name: WireName): Promise<JsonObject | null>;
  /** Records parts that the node stored in the database without a timely event, before the node is done. */
  adopt(name: WireName, hold: Hold): Promise<void>;
  /** Releases unfinished claims of attempts before this epoch, for workers that cannot do so themselves. */
  release(name: WireName, epoch: number): Promise<void>;
  /** Resolves when everything that has happened to a task can be read in the database. */
  caughtUp(taskId: string): Promise<void>;
  /** Marks a node as not complete in the database, because it has missed some of its input. */
  reopen(name: WireName): Promise<void>;
}
