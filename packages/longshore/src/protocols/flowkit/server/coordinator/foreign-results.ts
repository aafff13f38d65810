// What the coordinator needs of the database where workers of other makes keep results. Without one, all of it is absent: our own workers
// keep results in the data file, cannot miss input, and notice by themselves that they are late.

import type { JsonObject } from "../../../../core/json/json.ts";
import type { Hold } from "../../../../engine/board/task.ts";
import type { WireName } from "../task-addresses.ts";

export interface ForeignResults {
  /** The result of a node that is complete there; null when it is not. Such a node is not started. */
  completed(name: WireName): Promise<JsonObject | null>;
  /** Records what a node has produced there without an event in time, before the node is called done. */
  adopt(name: WireName, hold: Hold): Promise<void>;
  /** Releases what attempts before this epoch have claimed there and not done, for workers that cannot do so themselves. */
  release(name: WireName, epoch: number): Promise<void>;
  /** Resolves when everything that has happened to a task can be read there. */
  caughtUp(taskId: string): Promise<void>;
  /** Marks a node as not complete there: it has missed some of its input. */
  reopen(name: WireName): Promise<void>;
}
